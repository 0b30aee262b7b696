# Programs that are a Debian package of the same name.
has_curl() { has_command curl; }
install_curl() { apt_install curl; }

has_zsh() { has_command zsh; }
install_zsh() { apt_install zsh; }

has_fish() { has_command fish; }
install_fish() { apt_install fish; }
