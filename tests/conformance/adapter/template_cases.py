"""Templates as adapters write them, and at the edges of the language; `templates.json` has Go's answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

NOW: Final = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)

VARIABLES: Final[dict[str, Any]] = {
    "clusterId": "abc-123",
    "name": "My Cluster",
    "empty": "",
    "nothing": None,
    "yes": True,
    "no": False,
    "zero": 0,
    "count": 3,
    "million": 1000000,
    "large": 9007199254740993,
    "half": 0.5,
    "wide": 1000000.5,
    "tiny": 0.00001,
    "pi": 3.14159,
    "umlaut": "Größe ß",
    "odd": "a\"b\\c\n\t\u0001<&>'",
    "padded": "  x y \n",
    "digits": "42",
    "list": ["a", "b", "c"],
    "numbers": [1, 2.5, 3],
    "none": [],
    "map": {"b": 2, "a": 1, "c": {"d": [1, None, "x"]}},
    "blank": {},
    "conditions": [
        {"type": "Available", "status": "True", "message": "up"},
        {"type": "Health", "status": "False", "message": ""},
    ],
    "event": {"id": "e1", "generation": 5, "owner": {"id": "o1"}},
}

_PATHS: Final = (
    "plain text", "", "{{ .clusterId }}", "{{.clusterId}}", "a-{{ .clusterId }}-b",
    "{{ .event.id }}/{{ .event.owner.id }}", "{{ .missing }}", "{{ .event.missing }}", "{{ .clusterId.x }}",
    "{{ .nothing.x }}", "{{ .list.x }}", "{{ . | len }}", "{{ $.clusterId }}", "{{ $.event.owner.id }}",
    "{{ (.event).id }}", "{{ (index .conditions 0).type }}", "{{ .map.c.d }}", "{{ .nothing }}",
    "{{ .yes }} {{ .no }} {{ .zero }} {{ .count }}", "{{ .million }}", "{{ .large }}", "{{ .half }}", "{{ .wide }}",
    "{{ .tiny }}", "{{ .list }}", "{{ .numbers }}", "{{ .map }}", "{{ .none }} {{ .blank }}", "{{ .umlaut }}",
    "{{ .odd }}", "{{ .event }}", "{{ .conditions }}", "{{ print .map.c.d }}",
)  # fmt: skip

_TRIMMING: Final = (
    "a {{- .count -}} b", "a {{- .count }} b", "a {{ .count -}} b", "a\n\n{{- .count -}}\n\n b",
    "a {{/* comment */}} b", "a {{- /* comment */ -}} b", "{{- /* c */ -}}", "a {{-3}} b",
    "{{ .count -}}\n  {{- .count }}", "{{\n.count\n}}", "{{/* a\nb */}}x", "{{ /* c */ }}", "{{/* c */ }}",
    "x{{ .count }}\n", '{{"}}"}}', "{{`{{`}}", "{ {{ .count }} }", "}}",
)  # fmt: skip

_LITERALS: Final = (
    '{{ "a\\tb\\u00e9\\x41\\101" }}', "{{ `raw\\n` }}", "{{ 'a' }}", "{{ '\\n' }}", "{{ 12 }}", "{{ -3 }}",
    "{{ 0x1F }}", "{{ 0b11 }} {{ 0o17 }} {{ 017 }}", "{{ 1_000 }}", "{{ 1.5 }}", "{{ 1e3 }}", "{{ 1e6 }}", "{{ .5 }}",
    "{{ 1e21 }}", "{{ 1e-7 }}", "{{ true }}", "{{ nil }}", "{{ 9223372036854775807 }}", "{{ 9223372036854775808 }}",
    "{{ 1.0 }}", "{{ 089 }}", '{{ "a" "b" }}', '{{ "unclosed }}', "{{ 'ab' }}", '{{ "\\q" }}', "{{ 1a }}",
    "{{ 100000.0 }} {{ 1000000.0 }}",
)  # fmt: skip

_BLOCKS: Final = (
    "{{ if .yes }}y{{ end }}", "{{ if .no }}y{{ else }}n{{ end }}",
    "{{ if .empty }}y{{ else if .count }}c{{ else }}n{{ end }}", "{{ if .nothing }}y{{ else }}n{{ end }}",
    "{{ if .none }}y{{ else }}n{{ end }}", "{{ if .blank }}y{{ else }}n{{ end }}",
    "{{ if .zero }}y{{ else }}n{{ end }}", "{{ if .half }}y{{ end }}", "{{ if .missing }}y{{ end }}",
    "{{ if not .no }}y{{ end }}", "{{ if and .yes .count }}y{{ end }}", "{{ if or .no .missing }}y{{ end }}",
    "{{ if or .yes .missing }}y{{ end }}", "{{ if and .no .missing }}y{{ else }}n{{ end }}",
    "{{ if eq .count 3 }}y{{ end }}", '{{ if eq .clusterId "x" "abc-123" }}y{{ end }}',
    "{{ range .list }}[{{ . }}]{{ end }}", "{{ range $i, $v := .list }}{{ $i }}={{ $v }};{{ end }}",
    "{{ range $v := .list }}{{ $v }};{{ end }}", "{{ range .none }}x{{ else }}none{{ end }}",
    "{{ range .nothing }}x{{ else }}none{{ end }}", "{{ range $k, $v := .map }}{{ $k }}:{{ $v }};{{ end }}",
    "{{ range .conditions }}{{ .type }}={{ .status }} {{ end }}",
    "{{ range .conditions }}{{ $.clusterId }} {{ end }}",
    '{{ range .list }}{{ if eq . "b" }}{{ break }}{{ end }}{{ . }}{{ end }}',
    '{{ range .list }}{{ if eq . "b" }}{{ continue }}{{ end }}{{ . }}{{ end }}', "{{ range 3 }}{{ . }}{{ end }}",
    "{{ range $i := 3 }}{{ $i }}{{ end }}", "{{ range .clusterId }}x{{ end }}", "{{ range .half }}x{{ end }}",
    "{{ with .event }}{{ .id }}{{ end }}", "{{ with .empty }}x{{ else }}none{{ end }}",
    "{{ with $e := .event }}{{ $e.id }}{{ .generation }}{{ end }}",
    "{{ with .empty }}x{{ else with .count }}{{ . }}{{ end }}", "{{ with .event }}{{ $.clusterId }}{{ end }}",
    "{{ with .event }}{{ .clusterId }}{{ end }}", "{{ $x := 1 }}{{ $x }}", "{{ $x := 1 }}{{ $x = 2 }}{{ $x }}",
    "{{ $x := 1 }}{{ if .yes }}{{ $x = 2 }}{{ end }}{{ $x }}",
    "{{ $x := 1 }}{{ if .yes }}{{ $x := 2 }}{{ end }}{{ $x }}", "{{ $x = 1 }}", "{{ $x }}",
    "{{ $x := .event }}{{ $x.id }}", "{{$x:=1}}{{$x}}",
    '{{ $last := "" }}{{ range .list }}{{ $last = . }}{{ end }}{{ $last }}',
    "{{ if .yes }}{{ $x := 1 }}{{ end }}{{ $x }}",
    "{{ range $i, $c := .conditions }}{{ if $i }},{{ end }}{{ $c.type }}{{ end }}",
    "{{ range .list }}{{ range $.numbers }}{{ . }}{{ break }}{{ end }}{{ . }}{{ end }}", "{{ if .yes }}", "{{ end }}",
    "{{ else }}", "{{ if .yes }}a{{ else }}b{{ else }}c{{ end }}", "{{ break }}",
    "{{ range .list }}{{ else }}{{ break }}{{ end }}", "{{ if }}x{{ end }}", "{{ }}", "{{ .count", "{{ (.count }}",
    "{{ .count) }}", "{{ range .list }}{{ else range .none }}{{ end }}", "{{ $x := }}",
)  # fmt: skip

_FUNCTIONS: Final = (
    "{{ upper .clusterId }}", "{{ .name | lower }}", "{{ .umlaut | upper }}", "{{ .umlaut | lower }}",
    "{{ trim .padded }}|", '{{ trimPrefix .clusterId "abc-" }}', '{{ trimSuffix .clusterId "-123" }}',
    '{{ replace .clusterId "-" "_" }}', '{{ replace .list "a" "b" }}', '{{ contains .clusterId "c-1" }}',
    '{{ hasPrefix .clusterId "abc" }}', '{{ hasSuffix .clusterId "abc" }}', '{{ "-" | replace .clusterId "c" }}',
    "{{ quote .name }}", "{{ quote .odd }}", "{{ quote .umlaut }}", "{{ quote .count }}", '{{ default "d" .empty }}',
    '{{ .nothing | default "d" }}', '{{ .zero | default "d" }}', '{{ .missing | default "d" }}',
    '{{ default "d" .none }}', "{{ int .digits }}", "{{ int .half }}", "{{ int .wide }}", "{{ int .name }}",
    "{{ int .yes }}", "{{ int64 .digits }}", "{{ float64 .digits }}", "{{ float .pi }}", '{{ float "1e6" }}',
    '{{ int "99999999999999999999" }}', "{{ string .count }}", "{{ string .list }}", "{{ string .nothing }}",
    "{{ .million | string | len }}", '{{ date "2006-01-02T15:04:05Z07:00" now }}', '{{ now | date "2006-01-02" }}',
    '{{ dateFormat "Mon Jan _2 15:04:05.000 2006" now }}', '{{ date "2006" .clusterId }}',
    '{{ now.Format "02 Jan 06 3:04PM" }}', "{{ now.Year }}", "{{ now.Unix }}", '{{ (now.UTC).Format "15:04" }}',
    "{{ now }}", "{{ now.Nope }}", "{{ date now }}",
    "{{ len .list }} {{ len .map }} {{ len .umlaut }} {{ len .clusterId }}", "{{ len .count }}", "{{ len .nothing }}",
    "{{ index .list 1 }}", '{{ index .map "a" }}', '{{ index .map "c" "d" 2 }}', '{{ index .map "missing" }}',
    "{{ index .list 3 }}", "{{ index .list -1 }}", '{{ index .list "a" }}', "{{ index .clusterId 0 }}",
    "{{ index .nothing 1 }}", "{{ slice .clusterId 0 3 }}", "{{ slice .list 1 }}", "{{ slice .list 1 2 }}",
    "{{ slice .clusterId 4 }}", "{{ slice .clusterId 3 1 }}", "{{ slice .clusterId 0 99 }}", "{{ slice .count 1 }}",
    "{{ eq .count 3 }} {{ ne .count 3 }} {{ lt .count 4 }} {{ le .count 3 }} {{ gt .count 3 }} {{ ge .count 3 }}",
    '{{ eq .clusterId "abc-123" }}', '{{ lt "a" "b" }}', "{{ eq .yes true }}", "{{ eq .nothing nil }}",
    '{{ eq .nothing "x" }}', "{{ eq .list .list }}", '{{ eq .count "3" }}', "{{ lt .yes .no }}",
    "{{ lt .nothing 1 }}", "{{ eq .half 0.5 }}", "{{ eq .count 3.0 }}", "{{ lt .half 1 }}", "{{ eq .count }}",
    "{{ and 1 0 2 }}", '{{ or "" 0 "x" }}', "{{ or .zero .empty }}|", "{{ and .count .name }}", "{{ not .count }}",
    "{{ not }}", "{{ print .count .count .name .count }}", "{{ print 1 2 3 }}", '{{ print "a" "b" }}',
    '{{ print "a" 1 2 "b" }}', "{{ println .count .name }}", "{{ print nil }}", "{{ html .odd }}",
    "{{ urlquery .odd }}", '{{ urlquery "a b&c=d/e~f" }}', "{{ nope .x }}", "{{ lower }}", '{{ lower "A" "B" }}',
    "{{ lower .count }}", '{{ .clusterId | upper | lower | printf "%s!" }}', "{{ .count 1 }}", "{{ 3 | .count }}",
    "{{ .name | 3 }}", '{{ (lower "A") }}', "{{ lower (upper .name) }}", '{{ lower("A") }}', "{{ .a+1 }}",
    "{{ true.x }}", "{{ .count | and true }}",
)  # fmt: skip

_PRINTF: Final = (
    '{{ printf "%s-%s" .clusterId .name }}', '{{ printf "%d" .count }}',
    '{{ printf "%05d|%-5d|%+d|% d" 42 42 42 42 }}', '{{ printf "%v %v %v" .count .half .list }}',
    '{{ printf "%.2f" .pi }}', '{{ printf "%8.3f|%-8.1f|%08.2f" .pi .pi .pi }}', '{{ printf "%q" .name }}',
    '{{ printf "%q" .odd }}', '{{ printf "%t" .yes }}', '{{ printf "%x %X" 255 255 }}', '{{ printf "%x" .name }}',
    '{{ printf "%o %b %c" 8 5 65 }}', '{{ printf "%e %g" .pi .pi }}', '{{ printf "%g" 1e21 }}',
    '{{ printf "%.3g" 1234.5 }}', '{{ printf "%5s|%-5s|%.1s" "ab" "ab" "ab" }}', '{{ printf "100%%" }}',
    '{{ printf "%s" .list }}', '{{ printf "%v" .nothing }}', '{{ printf "%v" .map }}', '{{ printf "%d" .name }}',
    '{{ printf "%s" .count }}', '{{ printf "%d" }}', '{{ printf "a" 1 }}', '{{ printf "%z" 1 }}', '{{ printf "%" }}',
    '{{ printf "%*d" 5 42 }}', '{{ printf "%.0f" .count }}', '{{ printf "%d" 3.0 }}', "{{ printf .count }}",
    '{{ printf "%-10v|" .yes }}', '{{ printf "%6.2f%%" .half }}', '{{ printf "%03d" -5 }}',
    '{{ printf "%s" .nothing }}', '{{ printf "%f %.1e" .half .million }}',
)  # fmt: skip

TEMPLATES: Final[list[str]] = [*_PATHS, *_TRIMMING, *_LITERALS, *_BLOCKS, *_FUNCTIONS, *_PRINTF]
