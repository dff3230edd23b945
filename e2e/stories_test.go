package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/smithy-go"
)

// step is a step of a story: a client's call and the expected answer. Stories are the files in stories/, and each client plays the same
// ones; e2e/js/stories.js reads them for JavaScript. A $name stands for a value that an earlier step has saved. Members are named by a
// path with dots; a list on the way stands for its first element, and .length is how many it has.
type step struct {
	Call  string            // operation
	Until string            // operation, called repeatedly until the answer is as wanted
	With  map[string]any    // its input
	Want  map[string]any    // members of the answer
	Save  map[string]string // members of the answer, by the name they get
	Error string            // error with which the call must fail
	Names string            // text that its message must contain

	Server *struct{ Fleet, Compute, Token string } // instead of a call: a game server starts
}

// teller is a client that plays stories.
type teller interface {
	// call sends an operation and returns its answer, or the code and the message of its error.
	call(t *testing.T, operation string, input []byte) (answer object, code, message string)
}

// tellStories lets a client play all stories concurrently, or only the named ones.
func tellStories(t *testing.T, s *service, c teller, names ...string) {
	files, err := filepath.Glob("stories/*.json")
	must(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if len(names) == 0 || slices.Contains(names, name) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tellStory(t, s.in(t), c, file)
			})
		}
	}
}

func tellStory(t *testing.T, s *service, c teller, file string) {
	text, err := os.ReadFile(file)
	must(t, err)
	var steps []step
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&steps))
	saved := map[string]string{}
	for i, st := range steps {
		what := fmt.Sprintf("step %d, %s%s %v", i+1, st.Call, st.Until, st.With)
		if on := st.Server; on != nil {
			p := &place{service: s, fleet: fill(on.Fleet, saved), compute: fill(on.Compute, saved), token: fill(on.Token, saved)}
			p.startArena()
			continue
		}
		input := []byte("{}")
		if st.With != nil {
			with, err := json.Marshal(st.With)
			must(t, err)
			input = []byte(fill(string(with), saved))
		}
		var answer object
		tell := func() string {
			var code, message string
			answer, code, message = c.call(t, st.Call+st.Until, input)
			return st.judge(saved, answer, code, message)
		}
		wrong := tell()
		if st.Until != "" {
			for end := time.Now().Add(patience); wrong != "" && time.Now().Before(end); wrong = tell() {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if wrong != "" {
			t.Fatalf("%s:\n%s", what, wrong)
		}
		for name, path := range st.Save {
			if saved[name] = answer.text(strings.Split(path, ".")...); saved[name] == "" {
				t.Fatalf("%s: the answer has no %s: %v", what, path, answer)
			}
		}
	}
}

// judge returns what is wrong with an answer.
func (st *step) judge(saved map[string]string, answer object, code, message string) (wrong string) {
	if code != st.Error || !strings.Contains(message, fill(st.Names, saved)) {
		return fmt.Sprintf("got %q %s, want %q that names %q", code, message, st.Error, st.Names)
	}
	for _, path := range slices.Sorted(maps.Keys(st.Want)) {
		want := st.Want[path]
		if text, ok := want.(string); ok {
			want = fill(text, saved)
		}
		if got := answer.member(path); got != want {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
	}
	return ""
}

// member returns the value at a path in a story.
func (o object) member(path string) any {
	names := strings.Split(path, ".")
	if last := len(names) - 1; names[last] == "length" {
		return float64(o.count(names[:last]...))
	}
	return o.at(names...)
}

var savedName = regexp.MustCompile(`\$[A-Za-z]+`)

// fill replaces names with their saved values.
func fill(text string, saved map[string]string) string {
	return savedName.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := saved[name[1:]]; ok {
			return value
		}
		return name
	})
}

// sdkGo plays stories with the SDK for Go.
type sdkGo struct{ *gamelift.Client }

func (c sdkGo) call(t *testing.T, operation string, input []byte) (object, string, string) {
	method := reflect.ValueOf(c.Client).MethodByName(operation)
	if !method.IsValid() {
		t.Fatalf("the SDK for Go does not know %s", operation)
	}
	in := reflect.New(method.Type().In(1).Elem())
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(in.Interface()); err != nil {
		t.Fatalf("%s: %v in %s", operation, err, input)
	}
	out := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), in})
	if err, _ := out[1].Interface().(error); err != nil {
		api, ok := errors.AsType[smithy.APIError](err)
		if !ok {
			t.Fatalf("%s: %v", operation, err)
		}
		return nil, api.ErrorCode(), api.ErrorMessage()
	}
	return asObject(t, out[0].Interface()), "", ""
}

func asObject(t *testing.T, v any) object {
	text, err := json.Marshal(v)
	must(t, err)
	o := object{}
	must(t, json.Unmarshal(text, &o))
	return o
}

func (c *cli) call(t *testing.T, operation string, input []byte) (object, string, string) {
	out, errs, err := c.run(commandName(operation), "--cli-input-json", string(input))
	if err != nil {
		failed := cliError.FindStringSubmatch(errs)
		if failed == nil {
			t.Fatalf("aws gamelift %s %s: %s", commandName(operation), input, errs)
		}
		return nil, failed[1], failed[2]
	}
	answer := object{}
	if strings.TrimSpace(out) != "" {
		must(t, json.Unmarshal([]byte(out), &answer))
	}
	return answer, "", ""
}

var cliError = regexp.MustCompile(`An error occurred \((\w+)\) when calling the \w+ operation(?: \(reached max retries: \d+\))?: (.*)`)

// commandName returns the CLI's name of an operation: list-fleets for ListFleets.
func commandName(operation string) string {
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(operation, "$1-$2"))
}

// operationName is the inverse: ListFleets for list-fleets.
func operationName(command string) string {
	name := ""
	for word := range strings.SplitSeq(command, "-") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}
