package playerapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func documentOf(t *testing.T, text []byte, err error) node {
	t.Helper()
	var d node
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Answers may say more one day: no schema of theirs is closed. Requests are held to what is there.
func TestAnswersAreOpen(t *testing.T) {
	x := newLobby(t, nil)
	for _, realm := range []*Realm{x.door.player, x.door.partner, x.door.operator} {
		text, err := realm.Document()
		d := documentOf(t, text, err)
		schemas := d["components"].(node)["schemas"].(node)
		asked, answered := bodies(d)
		fromRequests := reached(d, asked...)
		for name := range fromRequests {
			if s := schemas[name].(node); s["properties"] != nil && s["additionalProperties"] != false {
				t.Errorf("%s: a request may have any field of %s", realm.Name, name)
			}
		}
		for name := range reached(d, answered...) {
			if fromRequests[name] {
				t.Errorf("%s: %s is of requests and of answers", realm.Name, name)
			}
			eachSchema(schemas[name], func(s node) {
				if values, _ := s["enum"].([]any); s["additionalProperties"] == false || len(values) > 1 {
					t.Errorf("%s: %s is closed: %v", realm.Name, name, s)
				}
			})
		}
	}
}

func eachSchema(part any, f func(node)) {
	switch x := part.(type) {
	case node:
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

// What asks for no token says so, every other call asks for one; and every call lists its refusals.
func TestCallsDeclareTokensAndRefusals(t *testing.T) {
	x := newLobby(t, nil)
	for _, realm := range []*Realm{x.door.player, x.door.partner, x.door.operator} {
		text, err := realm.Document()
		eachOperation(documentOf(t, text, err), func(path string, o node) {
			open := slices.Contains([]string{"Session.Login", "Server.Exchange"}, o["operationId"].(string))
			if security, ok := o["security"].([]any); !ok || (len(security) == 0) != open {
				t.Errorf("%s: security %v", path, o["security"])
			}
			for _, status := range []string{"200", "400", "401", "429", "503", "default"} {
				if o["responses"].(node)[status] == nil {
					t.Errorf("%s: no answer %s", path, status)
				}
			}
		})
	}
}

// Every code that there is stands in the documents with its meaning.
func TestEveryCodeIsExplained(t *testing.T) {
	x := newLobby(t, nil)
	text, err := x.door.player.Document()
	s := documentOf(t, text, err)["components"].(node)["schemas"].(node)[codeName].(node)
	listed := s["x-extensible-enum"].([]any)
	for code, is := range spellings {
		if !slices.Contains(listed, any(string(code))) || !strings.Contains(s["description"].(string), "| "+string(code)+" |") || !strings.HasSuffix(is.meaning, ".") {
			t.Errorf("%s is not listed, or has no meaning: %q", code, is.meaning)
		}
	}
	if len(listed) != len(spellings) {
		t.Errorf("%d codes are listed, there are %d", len(listed), len(spellings))
	}
}

// The rendering in OpenAPI 3.0 has nothing that 3.0 does not have.
func TestDocument30(t *testing.T) {
	x := newLobby(t, nil)
	for _, realm := range []*Realm{x.door.player, x.door.partner, x.door.operator} {
		text, err := realm.Document30()
		d := documentOf(t, text, err)
		if d["openapi"] != "3.0.3" {
			t.Errorf("%s: openapi %v", realm.Name, d["openapi"])
		}
		eachSchema(d, func(s node) {
			_, union := s["type"].([]any)
			ref, _ := s["$ref"].(string)
			if union || s["anyOf"] != nil || s["oneOf"] != nil || strings.HasPrefix(ref, schemasPath) && len(s) > 1 {
				t.Errorf("%s: not of OpenAPI 3.0: %v", realm.Name, s)
			}
		})
	}
}
