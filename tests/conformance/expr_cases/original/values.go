package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"time"
	"unicode/utf8"
)

type tagged map[string]any

// encode writes a value with its type: nil, bools and strings are plain JSON, everything else is tagged.
func encode(value any) *json.RawMessage {
	text, err := json.Marshal(tag(reflect.ValueOf(value)))
	if err != nil {
		panic(err)
	}
	raw := json.RawMessage(text)
	return &raw
}

func tag(value reflect.Value) any {
	for value.IsValid() && value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	if !value.IsValid() {
		return nil
	}
	switch known := value.Interface().(type) {
	case time.Time:
		return tagged{"k": "time", "v": known.UTC().Format(time.RFC3339Nano), "z": zoneName(known)}
	case time.Duration:
		return tagged{"k": "duration", "v": int64(known)}
	case *time.Location:
		return tagged{"k": "zone", "v": known.String()}
	case time.Location: // the original follows some pointers
		return tagged{"k": "zone", "v": known.String()}
	case time.Month, time.Weekday:
		return tagged{"k": value.Type().String(), "v": value.Int()}
	}
	switch value.Kind() {
	case reflect.Bool:
		return value.Bool()
	case reflect.String:
		return tagText(value.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return tagged{"k": value.Type().String(), "v": value.Int()}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return tagged{"k": value.Type().String(), "v": value.Uint()}
	case reflect.Float32, reflect.Float64:
		return tagged{"k": value.Type().String(), "v": tagFloat(value.Float())}
	case reflect.Slice, reflect.Array:
		return tagList(value)
	case reflect.Map:
		return tagMap(value)
	case reflect.Struct:
		return tagStruct(value)
	case reflect.Pointer:
		return tag(value.Elem())
	case reflect.Func:
		return tagged{"k": "func"}
	}
	return tagged{"k": "other", "t": value.Type().String(), "v": fmt.Sprintf("%v", value.Interface())}
}

// The machine's zone has the name that it would have if it were not set by TZ.
func zoneName(moment time.Time) string {
	if moment.Location() == time.Local {
		return "Local"
	}
	return moment.Location().String()
}

// A string that is no text would lose its bytes in JSON.
func tagText(text string) any {
	if utf8.ValidString(text) {
		return text
	}
	return tagged{"k": "bytes", "v": base64.StdEncoding.EncodeToString([]byte(text))}
}

func tagFloat(number float64) any {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return strconv.FormatFloat(number, 'g', -1, 64)
	}
	return number
}

func tagList(value reflect.Value) any {
	if value.Kind() == reflect.Slice && value.IsNil() {
		return tagged{"k": "nilslice"}
	}
	items := []any{}
	for i := 0; i < value.Len(); i++ {
		items = append(items, tag(value.Index(i)))
	}
	return tagged{"k": "list", "t": value.Type().Elem().String(), "v": items}
}

func tagMap(value reflect.Value) any {
	if value.IsNil() {
		return tagged{"k": "nilmap"}
	}
	entries := [][2]any{}
	for _, key := range value.MapKeys() {
		entries = append(entries, [2]any{tag(key), tag(value.MapIndex(key))})
	}
	sort.Slice(entries, func(i, j int) bool {
		return fmt.Sprint(entries[i][0]) < fmt.Sprint(entries[j][0])
	})
	return tagged{"k": "map", "t": value.Type().String(), "v": entries}
}

func tagStruct(value reflect.Value) any {
	fields := map[string]any{}
	for i := 0; i < value.NumField(); i++ {
		field := value.Type().Field(i)
		if field.IsExported() {
			fields[fieldName(field)] = tag(value.Field(i))
		}
	}
	return tagged{"k": "struct", "t": value.Type().String(), "v": fields}
}

func fieldName(field reflect.StructField) string {
	if name := field.Tag.Get("expr"); name != "" {
		return name
	}
	return field.Name
}
