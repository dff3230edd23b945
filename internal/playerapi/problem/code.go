package problem

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterhq/muster/internal/domain/flow"
)

// Code is the reason for a refusal, one of spellings.
type Code string

// CodeName is the name of the type in the documents.
const CodeName = "ErrorCode"

// Schema returns the schema of a code: all codes with their meaning.
func (Code) Schema(r huma.Registry) *huma.Schema {
	if all := r.Map(); all[CodeName] == nil {
		all[CodeName] = codeSchema()
	}
	return &huma.Schema{Ref: "#/components/schemas/" + CodeName}
}

func codeSchema() *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: "Programs act on it. Clients handle an unknown code by its HTTP status.\n\n" +
		"| code | HTTP status | action | meaning |\n| --- | --- | --- | --- |\n"}
	for _, code := range slices.SortedFunc(maps.Keys(spellings), func(a, b flow.Code) int {
		return cmp.Or(cmp.Compare(spellings[a].status, spellings[b].status), strings.Compare(string(a), string(b)))
	}) {
		x := spellings[code]
		s.Enum = append(s.Enum, string(code))
		s.Description += fmt.Sprintf("| %s | %d | %s | %s |\n", code, x.status, x.action, x.meaning)
	}
	return s
}
