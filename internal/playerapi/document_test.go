package playerapi

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/playerapi/calls"
)

func documentOf(t *testing.T, text []byte, err error) tree {
	t.Helper()
	var d tree
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

type tree = map[string]any

const refPrefix = "#/components/schemas/"

func eachCall(d tree, f func(path string, o tree)) {
	for path, methods := range d["paths"].(tree) {
		for _, o := range methods.(tree) {
			f(path, o.(tree))
		}
	}
}

// reach gathers the names of the schemas that a part of a document refers to.
func reach(schemas tree, part any, names map[string]bool) {
	eachSchema(part, func(s tree) {
		ref, _ := s["$ref"].(string)
		if name := strings.TrimPrefix(ref, refPrefix); ref != "" && !names[name] {
			names[name] = true
			reach(schemas, schemas[name], names)
		}
	})
}

// Later releases may add members to answers, so no schema of an answer is closed. Requests may have only known members.
func TestAnswersAreOpen(t *testing.T) {
	x := newLobby(t, nil)
	for _, realm := range []*calls.Realm{x.door.player, x.door.partner, x.door.operator} {
		text, err := realm.Document()
		d := documentOf(t, text, err)
		schemas := d["components"].(tree)["schemas"].(tree)
		fromRequests, fromAnswers := map[string]bool{}, map[string]bool{}
		eachCall(d, func(_ string, o tree) {
			reach(schemas, o["requestBody"], fromRequests)
			reach(schemas, o["responses"], fromAnswers)
		})
		for name := range fromRequests {
			if s := schemas[name].(tree); s["properties"] != nil && s["additionalProperties"] != false {
				t.Errorf("%s: a request may have any field of %s", realm.Name, name)
			}
		}
		for name := range fromAnswers {
			if fromRequests[name] {
				t.Errorf("%s: %s is of requests and of answers", realm.Name, name)
			}
			eachSchema(schemas[name], func(s tree) {
				if values, _ := s["enum"].([]any); s["additionalProperties"] == false || len(values) > 1 {
					t.Errorf("%s: %s is closed: %v", realm.Name, name, s)
				}
			})
		}
	}
}

func eachSchema(part any, f func(tree)) {
	switch x := part.(type) {
	case tree:
		f(x)
		for _, value := range x {
			eachSchema(value, f)
		}
	case []any:
		for _, value := range x {
			eachSchema(value, f)
		}
	}
}

// A call without a token declares that, every other call requires one, and every call lists its refusals.
func TestCallsDeclareTokensAndRefusals(t *testing.T) {
	x := newLobby(t, nil)
	for _, realm := range []*calls.Realm{x.door.player, x.door.partner, x.door.operator} {
		text, err := realm.Document()
		eachCall(documentOf(t, text, err), func(path string, o tree) {
			open := slices.Contains([]string{"Session.Login", "Server.Exchange"}, o["operationId"].(string))
			if security, ok := o["security"].([]any); !ok || (len(security) == 0) != open {
				t.Errorf("%s: security %v", path, o["security"])
			}
			for _, status := range []string{"200", "400", "401", "429", "503", "default"} {
				if o["responses"].(tree)[status] == nil {
					t.Errorf("%s: no answer %s", path, status)
				}
			}
		})
	}
}

// No field is declared longer than a body may be: its callers would get 413 for what the document allows.
func TestFieldsFitIntoABody(t *testing.T) {
	const body = 64 << 10
	x := newLobby(t, nil)
	for _, realm := range []*calls.Realm{x.door.player, x.door.partner, x.door.operator} {
		text, err := realm.Document()
		eachSchema(documentOf(t, text, err)["components"], func(s tree) {
			for name, field := range s {
				if field, ok := field.(tree); ok {
					if most, _ := field["maxLength"].(float64); most > body {
						t.Errorf("%s: %s may have %.0f characters, and a body %d bytes", realm.Name, name, most, body)
					}
				}
			}
		})
	}
}

// Every existing code is in the documents with its meaning.
func TestEveryCodeIsExplained(t *testing.T) {
	x := newLobby(t, nil)
	text, err := x.door.player.Document()
	s := documentOf(t, text, err)["components"].(tree)["schemas"].(tree)["ErrorCode"].(tree)
	listed := s["x-extensible-enum"].([]any)
	for _, code := range listed {
		if !regexp.MustCompile(`(?m)^\| ` + code.(string) + ` \|.*\. \|$`).MatchString(s["description"].(string)) {
			t.Errorf("%s has no meaning", code)
		}
	}
	if len(listed) < 50 {
		t.Errorf("%d codes are listed, want all", len(listed))
	}
}

// The rendering in OpenAPI 3.0 has nothing that 3.0 does not have.
func TestDocument30(t *testing.T) {
	x := newLobby(t, nil)
	for _, realm := range []*calls.Realm{x.door.player, x.door.partner, x.door.operator} {
		text, err := realm.Document30()
		d := documentOf(t, text, err)
		if d["openapi"] != "3.0.3" {
			t.Errorf("%s: openapi %v", realm.Name, d["openapi"])
		}
		eachSchema(d, func(s tree) {
			_, union := s["type"].([]any)
			ref, _ := s["$ref"].(string)
			if union || s["anyOf"] != nil || s["oneOf"] != nil || strings.HasPrefix(ref, refPrefix) && len(s) > 1 {
				t.Errorf("%s: not of OpenAPI 3.0: %v", realm.Name, s)
			}
		})
	}
}
