package ruleset_test

import (
	"reflect"
	"testing"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

func TestValuesOfListsAndMaps(t *testing.T) {
	for _, c := range []struct{ sent, want []string }{
		{nil, nil},
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"b", "a", "b", "c", "a", "d"}, []string{"b", "a", "c", "d"}},
		{[]string{"a", "a"}, []string{"a"}},
	} {
		if got := ruleset.ListOf(c.sent); got.Kind != ruleset.List || !reflect.DeepEqual(got.List, c.want) {
			t.Errorf("list of %q: %q, want %q", c.sent, got.List, c.want)
		}
	}
	want := []ruleset.Entry{{Key: "a", Number: 1}, {Key: "b", Number: 2}, {Key: "c", Number: 3}}
	if got := ruleset.MapOf(map[string]float64{"c": 3, "a": 1, "b": 2}); got.Kind != ruleset.Map || !reflect.DeepEqual(got.Map, want) {
		t.Errorf("map: %v, want %v", got.Map, want)
	}
}

// A request has as many strings as fit into it, before a limit applies.
func TestListOfVeryManyStrings(t *testing.T) {
	many := make([]string, 300_000)
	for i := range many {
		many[i] = string([]rune{rune('a' + i%26), rune(0x4e00 + i/26)})
	}
	if got := ruleset.ListOf(append(many, many...)); len(got.List) != len(many) {
		t.Errorf("%d strings, want %d", len(got.List), len(many))
	}
}
