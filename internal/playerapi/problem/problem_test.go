package problem

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/flow"
)

// Every code that the core knows has a status and an action.
func TestEveryCodeIsSpelled(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../domain/flow/code.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != "Code" {
			return true
		}
		code, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		codes++
		if _, ok := spellings[flow.Code(code)]; !ok {
			t.Errorf("%s has no entry", code)
		}
		return true
	})
	if codes < 40 {
		t.Errorf("found %d codes only", codes)
	}
}

// The members of a game are listed, each with the possible actions.
func TestPlayersInGameAreSpelled(t *testing.T) {
	spelled := func(players, decliners []string) Details {
		return Of(flow.Refuse(flow.Refusal{Code: flow.PlayerInGame, Players: players, Decliners: decliners}, "in a game"), 0, nil).Details
	}
	got := spelled([]string{"a", "b"}, []string{"b"})
	if *got.CanDecline || !slices.Equal(got.InGame, []InGame{{"a", false}, {"b", true}}) {
		t.Errorf("a may not decline: %+v, all %t", got.InGame, *got.CanDecline)
	}
	if got := spelled([]string{"b"}, []string{"b"}); !*got.CanDecline || !slices.Equal(got.InGame, []InGame{{"b", true}}) {
		t.Errorf("b may decline: %+v, all %t", got.InGame, *got.CanDecline)
	}
}

// Every code stands in the documents with its meaning.
func TestEveryCodeHasAMeaning(t *testing.T) {
	schema := codeSchema()
	for code, is := range spellings {
		if !slices.Contains(schema.Enum, any(string(code))) || !strings.Contains(schema.Description, "| "+string(code)+" |") || !strings.HasSuffix(is.meaning, ".") {
			t.Errorf("%s is not listed, or has no meaning: %q", code, is.meaning)
		}
	}
}
