// Renders templates with Go's own text/template and the functions that the reference lists for adapters.
//
// Reads one JSON object ({"now", "variables", "templates"}) and writes a list with one answer for each template: its
// text, or its error and the stage, parse or run. Whole numbers are int, others float64. See record.py.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/template"
	"time"
)

type question struct {
	Now       time.Time      `json:"now"`
	Variables map[string]any `json:"variables"`
	Templates []string       `json:"templates"`
}

type answer struct {
	Template string  `json:"template"`
	Text     *string `json:"text,omitempty"`
	Error    string  `json:"error,omitempty"`
	Stage    string  `json:"stage,omitempty"`
}

func main() {
	decoder := json.NewDecoder(os.Stdin)
	decoder.UseNumber()
	var asked question
	if err := decoder.Decode(&asked); err != nil {
		panic(err)
	}
	variables := plain(asked.Variables).(map[string]any)
	answers := []answer{}
	for _, text := range asked.Templates {
		answers = append(answers, render(text, variables, asked.Now))
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(answers); err != nil {
		panic(err)
	}
}

func render(text string, variables map[string]any, now time.Time) answer {
	parsed, err := template.New("t").Funcs(functions(now)).Option("missingkey=error").Parse(text)
	if err != nil {
		return answer{Template: text, Error: err.Error(), Stage: "parse"}
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, variables); err != nil {
		return answer{Template: text, Error: err.Error(), Stage: "run"}
	}
	rendered := out.String()
	return answer{Template: text, Text: &rendered}
}

// plain turns the numbers of JSON into int or float64.
func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := strconv.Atoi(value.String()); err == nil {
			return whole
		}
		number, err := value.Float64()
		if err != nil {
			panic(err)
		}
		return number
	case []any:
		for i := range value {
			value[i] = plain(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = plain(value[key])
		}
	}
	return value
}

func functions(now time.Time) template.FuncMap {
	format := func(layout string, moment time.Time) string { return moment.Format(layout) }
	return template.FuncMap{
		"now": func() time.Time { return now }, "date": format, "dateFormat": format,
		"lower": strings.ToLower, "upper": strings.ToUpper, "trim": strings.TrimSpace,
		"trimPrefix": strings.TrimPrefix, "trimSuffix": strings.TrimSuffix, "replace": strings.ReplaceAll,
		"contains": strings.Contains, "hasPrefix": strings.HasPrefix, "hasSuffix": strings.HasSuffix,
		"quote":  strconv.Quote,
		"string": func(value any) string { return fmt.Sprint(value) },
		"int":    func(value any) int { return int(whole(value)) }, "int64": whole,
		"float": number, "float64": number,
		"default": func(fallback, value any) any {
			if value == nil || value == "" {
				return fallback
			}
			return value
		},
	}
}

func whole(value any) int64 {
	switch value := value.(type) {
	case int:
		return int64(value)
	case int64:
		return value
	case float64:
		return int64(value)
	case string:
		parsed, _ := strconv.ParseInt(value, 10, 64)
		return parsed
	}
	return 0
}

func number(value any) float64 {
	switch value := value.(type) {
	case int:
		return float64(value)
	case int64:
		return float64(value)
	case float64:
		return value
	case string:
		parsed, _ := strconv.ParseFloat(value, 64)
		return parsed
	}
	return 0
}
