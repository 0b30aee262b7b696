// Answers expressions with the original implementation of the language.
//
// Reads one JSON object a line ({"set", "src", "expect"?}) and writes the same object with its answer: `out`, the
// value with its Go type, or `err` and `stage`, the error text and whether compiling or running failed. `unstable`
// says that repeated runs disagree. The first line of the output holds the environments. See record.py.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
)

// Enough to see that Go's maps have no order: two entries agree by chance with a probability of 2^-20.
const repetitions = 20

type testCase struct {
	Set      string           `json:"set"`
	Src      string           `json:"src"`
	Expect   string           `json:"expect,omitempty"`
	Out      *json.RawMessage `json:"out,omitempty"`
	Err      string           `json:"err,omitempty"`
	Stage    string           `json:"stage,omitempty"`
	Unstable bool             `json:"unstable,omitempty"`
}

var kinds = map[string]reflect.Kind{
	"bool": reflect.Bool, "int": reflect.Int, "float64": reflect.Float64,
	"string": reflect.String, "slice": reflect.Slice, "map": reflect.Map,
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	writeLine(out, map[string]any{"environments": describeWorlds()})

	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked testCase
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		answered := answer(asked)
		for i := 1; i < repetitions; i++ {
			if again := answer(asked); !reflect.DeepEqual(again, answered) {
				answered.Unstable = true
			}
		}
		writeLine(out, answered)
	}
	if err := lines.Err(); err != nil {
		panic(err)
	}
}

func writeLine(out *bufio.Writer, value any) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
}

// answer compiles and runs one expression. Environments are made for each run, so that no answer depends on another.
func answer(asked testCase) (answered testCase) {
	answered = asked
	answered.Stage = "compile"
	defer func() {
		if crash := recover(); crash != nil {
			answered.Err = fmt.Sprintf("panic: %v", crash)
		}
	}()
	world := worlds[asked.Set]
	options := []expr.Option{}
	if world.declared {
		options = append(options, expr.Env(world.make()))
	}
	if asked.Expect != "" {
		options = append(options, expr.AsKind(kinds[asked.Expect]))
	}
	program, err := expr.Compile(asked.Src, options...)
	if err != nil {
		answered.Err = describeError(err)
		return answered
	}
	answered.Stage = "run"
	value, err := expr.Run(program, world.make())
	if err != nil {
		answered.Err = describeError(err)
		return answered
	}
	answered.Stage = ""
	answered.Out = encode(value)
	return answered
}

// describeError returns message and place, without the lines that show the source again.
func describeError(err error) string {
	var placed *file.Error
	if errors.As(err, &placed) && placed.Snippet != "" {
		return fmt.Sprintf("%s (%d:%d)", placed.Message, placed.Line, placed.Column+1)
	}
	return err.Error() // of an empty source
}
