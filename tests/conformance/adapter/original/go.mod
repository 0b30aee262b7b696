module hyperfleet/template_cases

go 1.22
