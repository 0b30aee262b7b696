package main

import (
	"errors"
	"reflect"
	"strings"
	"time"
	_ "time/tzdata"
)

// The environments of the sets. tests/conformance/expr_cases/worlds.py has the same; a test compares them.
type world struct {
	make     func() map[string]any
	declared bool // whether compiling knows the types
}

var worlds = map[string]world{
	"typed":   {makeTyped, true},
	"untyped": {makeUntyped, false},
	"rules":   {makeRules, true},
}

type Address struct {
	City string `expr:"city" json:"city"`
	Zip  int    `expr:"zip" json:"zip"`
}

type Person struct {
	Name  string   `expr:"name" json:"name"`
	Age   int      `expr:"age" json:"age"`
	Score float64  `expr:"score" json:"score"`
	Here  bool     `expr:"here" json:"here"`
	Tags  []string `expr:"tags" json:"tags"`
	Home  Address  `expr:"home" json:"home"`
}

func people() []Person {
	return []Person{
		{"ann", 41, 1.5, true, []string{"a", "b"}, Address{"Köln", 50667}},
		{"bob", 7, -0.25, false, []string{}, Address{"Lyon", 69001}},
		{"cy", 41, 3, true, []string{"b"}, Address{"Köln", 50668}},
	}
}

func moment() time.Time {
	return time.Date(2024, 2, 29, 13, 4, 5, 678901000, time.UTC)
}

func zone(name string) *time.Location {
	found, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return found
}

func makeTyped() map[string]any {
	persons := people()
	byName := map[string]Person{}
	for _, person := range persons {
		byName[person.Name] = person
	}
	return map[string]any{
		"i":      3,
		"n":      -7,
		"f":      0.5,
		"g":      -2.25,
		"s":      "héllo",
		"csv":    "a,b,c",
		"b":      true,
		"no":     false,
		"xs":     []int{3, 1, 2},
		"fs":     []float64{0.5, 2, -1.5},
		"words":  []string{"pear", "Apple", "fig"},
		"people": persons,
		"by":     byName,
		"counts": map[string]int{"a": 1, "b": 2},
		"owner":  &Address{"Köln", 50667},
		"nobody": (*Address)(nil),
		"items":  []any{1, "a", nil, 2.5, true, []any{1, 2}},
		"m":      makeUntyped(),
		"at":     moment(),
		"later":  moment().Add(36 * time.Hour),
		"wait":   90*time.Minute + 1500*time.Millisecond,
		"zone":   zone("Europe/Berlin"),
		"raw":    []byte("ab\xff"),
		"twice":  func(number int) int { return number * 2 },
		"half":   func(number float64) float64 { return number / 2 },
		"glue":   func(separator string, parts ...string) string { return strings.Join(parts, separator) },
		"root":   root,
	}
}

func root(number int) (int, error) {
	if number < 0 {
		return 0, errors.New("no root of a negative number")
	}
	found := 0
	for (found+1)*(found+1) <= number {
		found++
	}
	return found, nil
}

func makeUntyped() map[string]any {
	return map[string]any{
		"i":    4,
		"f":    1.5,
		"s":    "text",
		"b":    true,
		"no":   false,
		"zz":   nil,
		"xs":   []any{3, 1, 2},
		"mix":  []any{1, "a", nil, 2.5},
		"deep": map[string]any{"a": map[string]any{"b": 2}, "list": []any{[]any{1}, []any{2, 3}}},
		"rows": []any{
			map[string]any{"name": "n1", "cpu": 4, "ready": true},
			map[string]any{"name": "n2", "cpu": 16, "ready": false},
			map[string]any{"name": "n3", "cpu": 8, "ready": true, "zone": "a"},
		},
		"at": moment(),
		"d":  5 * time.Minute,
	}
}

type Condition struct {
	Type               string    `expr:"type" json:"type"`
	Status             string    `expr:"status" json:"status"`
	Reason             string    `expr:"reason" json:"reason"`
	Message            string    `expr:"message" json:"message"`
	LastTransitionTime time.Time `expr:"lastTransitionTime" json:"lastTransitionTime"`
}

type AdapterStatus struct {
	Adapter            string               `expr:"adapter" json:"adapter"`
	Available          string               `expr:"available" json:"available"`
	Applied            string               `expr:"applied" json:"applied"`
	Health             string               `expr:"health" json:"health"`
	ObservedGeneration int                  `expr:"observedGeneration" json:"observedGeneration"`
	LastUpdated        time.Time            `expr:"lastUpdated" json:"lastUpdated"`
	Reason             string               `expr:"reason" json:"reason"`
	Message            string               `expr:"message" json:"message"`
	Conditions         map[string]Condition `expr:"conditions" json:"conditions"`
	Data               map[string]any       `expr:"data" json:"data"`
	Reported           bool                 `expr:"reported" json:"reported"`
	Current            bool                 `expr:"current" json:"current"`
	Stale              bool                 `expr:"stale" json:"stale"`
	State              string               `expr:"state" json:"state"`
}

func adapter(name, available, reason string, generation int, data map[string]any) AdapterStatus {
	return AdapterStatus{
		Adapter: name, Available: available, Applied: "True", Health: "True", ObservedGeneration: generation,
		LastUpdated: moment(), Reason: reason, Message: name + " is " + available,
		Conditions: map[string]Condition{
			"Available": {"Available", available, reason, "", moment()},
			"Health":    {"Health", "True", "Healthy", "", moment()},
		},
		Data: data, Reported: true, Current: generation == 3, Stale: false,
		State: map[string]string{"True": "Completed", "False": "Failed"}[available],
	}
}

func makeRules() map[string]any {
	required := []AdapterStatus{
		adapter("validation", "True", "AllGood", 3, map[string]any{"checks": 12, "ok": true}),
		adapter("dns", "True", "RecordsCreated", 3, map[string]any{"zones": []any{"a", "b"}, "ttl": 300}),
		adapter("infrastructure", "False", "QuotaExceeded", 2, map[string]any{}),
	}
	optional := []AdapterStatus{adapter("monitoring", "True", "Running", 3, map[string]any{"url": "https://m"})}
	all := append(append([]AdapterStatus{}, required...), optional...)
	byName := map[string]AdapterStatus{}
	for _, each := range all {
		byName[each.Adapter] = each
	}
	return map[string]any{
		"requiredAdapters":  required,
		"optionalAdapters":  optional,
		"allAdapters":       all,
		"adapters":          byName,
		"currentGeneration": 3,
		"olderThan":         olderThan,
	}
}

// The clock of this environment stands ten minutes after the last report.
func olderThan(adapter AdapterStatus, age string) (bool, error) {
	limit, err := time.ParseDuration(age)
	return err == nil && adapter.Reported && limit < 10*time.Minute, err
}

// describeWorlds returns every name of every environment with its type and value.
func describeWorlds() map[string]map[string][2]any {
	described := map[string]map[string][2]any{}
	for set, world := range worlds {
		described[set] = map[string][2]any{}
		for name, value := range world.make() {
			if value == nil {
				described[set][name] = [2]any{"unknown", nil}
				continue
			}
			described[set][name] = [2]any{reflect.TypeOf(value).String(), tag(reflect.ValueOf(value))}
		}
	}
	return described
}
