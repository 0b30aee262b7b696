module hyperfleet/expr_cases

go 1.21

require github.com/expr-lang/expr v1.17.8
