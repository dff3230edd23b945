package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documents has the OpenAPI documents of the realms, which the service serves as they are in the repository. An independent library
// validates every answer and event of every story about players against them.
type documents struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

var realmDocuments = sync.OnceValues(func() (*documents, error) {
	d := &documents{compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	for _, realm := range []string{"player", "partner", "operator"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", "player-flow", "openapi-"+realm+".json"))
		if err != nil {
			return nil, err
		}
		parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		closeSchemas(parsed)
		if err := d.compiler.AddResource("muster:"+realm, parsed); err != nil {
			return nil, err
		}
	}
	return d, nil
})

// closeSchemas removes the extension points of a document for later services: this service sends nothing that is not documented.
func closeSchemas(part any) {
	switch x := part.(type) {
	case map[string]any:
		if _, object := x["properties"].(map[string]any); object && x["additionalProperties"] == nil {
			x["additionalProperties"] = false
		}
		if values, open := x["x-extensible-enum"]; open {
			x["enum"] = values
		}
		if all, ok := x["anyOf"].([]any); ok {
			x["anyOf"] = slices.DeleteFunc(all, func(one any) bool {
				to, _ := one.(map[string]any)
				return to["$ref"] == "#/components/schemas/OtherEvent"
			})
		}
		for _, value := range x {
			closeSchemas(value)
		}
	case []any:
		for _, value := range x {
			closeSchemas(value)
		}
	}
}

// check validates a text against a part of a document.
func (d *documents) check(realm string, path []string, text []byte) error {
	at := "muster:" + realm + "#"
	for _, step := range path {
		at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
	}
	d.mu.Lock()
	schema := d.compiled[at]
	if schema == nil {
		var err error
		if schema, err = d.compiler.Compile(at); err != nil {
			d.mu.Unlock()
			return err
		}
		d.compiled[at] = schema
	}
	d.mu.Unlock()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(parsed)
}

// isAsDocumented validates an answer against the document of its realm.
func isAsDocumented(realm, call string, status int, answer []byte) error {
	d, err := realmDocuments()
	if err != nil {
		return err
	}
	response := "default"
	if slices.Contains([]int{200, 400, 401, 429, 503}, status) {
		response = strconv.Itoa(status)
	}
	path := []string{"paths", "/playerflow/v1/" + realm + "/" + call, "post", "responses", response, "content", "application/json", "schema"}
	if err := d.check(realm, path, answer); err != nil {
		return fmt.Errorf("the answer to %s is not what the document says: %w\n%.3000s", call, err, answer)
	}
	return nil
}

// frameIsAsDocumented validates the frames of a player's stream against the document: events, which are numbered, and hello.
func frameIsAsDocumented(frame object) error {
	name := frame.text("type")
	switch {
	case frame["seq"] == nil && name != "hello":
		return nil
	case name == "hello":
		name = "Hello"
	}
	d, err := realmDocuments()
	if err != nil {
		return err
	}
	text, err := json.Marshal(frame)
	if err == nil {
		err = d.check("player", []string{"components", "schemas", name}, text)
	}
	if err != nil {
		return fmt.Errorf("a frame is not what the document says: %w\n%.3000s", err, text)
	}
	return nil
}

// The validation notices content that is not in the documents.
func TestValidatorFindsWhatDocumentsLack(t *testing.T) {
	t.Parallel()
	const keys = `"flow":{"rev":0,"seq":0,"phase":"IDLE","keys":{}}`
	for answer, fits := range map[string]bool{
		`{` + keys + `}`:          true,
		`{}`:                      false,
		`{` + keys + `,"more":1}`: false,
		`{"flow":{"rev":"0","seq":0,"phase":"IDLE","keys":{}}}`: false,
		`{"flow":{"rev":0,"seq":0,"phase":"LOST","keys":{}}}`:   false,
	} {
		if err := isAsDocumented("player", "Session.Logout", http.StatusOK, []byte(answer)); (err == nil) != fits {
			t.Errorf("%s: %v, want fits %t", answer, err, fits)
		}
	}
	for text, fits := range map[string]bool{
		`{"seq":1,"commit":"1","ts":"2030-01-02T03:04:05.000Z","type":"OnAddedToParty","data":{"party_id":"pty-1"}}`: true,
		`{"seq":1,"commit":"1","ts":"yesterday","type":"OnAddedToParty","data":{"party_id":"pty-1"}}`:                false,
		`{"seq":1,"commit":"1","ts":"2030-01-02T03:04:05.000Z","type":"OnAddedToParty","data":{}}`:                   false,
		`{"seq":1,"commit":"1","ts":"2030-01-02T03:04:05.000Z","type":"OnNothing","data":{}}`:                        false,
		`{"type":"hello"}`: false,
		`{"type":"ping"}`:  true,
	} {
		var frame object
		must(t, json.Unmarshal([]byte(text), &frame))
		if err := frameIsAsDocumented(frame); (err == nil) != fits {
			t.Errorf("%s: %v, want fits %t", text, err, fits)
		}
	}
}
