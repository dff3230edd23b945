package playerflow

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// readAttributes parses a JSON object. Any other text yields no attributes.
func readAttributes(text string) map[string]any {
	var all map[string]any
	if text == "" || json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	return all
}

// chooseAttributes returns the attributes that a rule set declares, each from the first source that has a value of the
// declared type. It ignores all others.
func chooseAttributes(rules *ruleset.RuleSet, sources ...map[string]any) []ruleset.NamedValue {
	var chosen []ruleset.NamedValue
	for _, a := range rules.Attributes {
		for _, source := range sources {
			if v, ok := attributeValue(source[a.Name], a.Kind); ok {
				chosen = append(chosen, ruleset.NamedValue{Name: a.Name, Value: v})
				break
			}
		}
	}
	return chosen
}

func attributeValue(x any, kind ruleset.Kind) (v ruleset.Value, ok bool) {
	v.Kind = kind
	switch x := x.(type) {
	case string:
		v.Text = x
		return v, kind == ruleset.String
	case float64:
		v.Number = x
		return v, kind == ruleset.Number && !math.IsInf(x, 0)
	case []any:
		for _, item := range x {
			text, isText := item.(string)
			if !isText {
				return v, false
			}
			if !slices.Contains(v.List, text) {
				v.List = append(v.List, text)
			}
		}
		return v, kind == ruleset.List
	case map[string]any:
		for _, key := range slices.SortedFunc(maps.Keys(x), cmp.Compare[string]) {
			number, isNumber := x[key].(float64)
			if !isNumber {
				return v, false
			}
			v.Map = append(v.Map, ruleset.Entry{Key: key, Number: number})
		}
		return v, kind == ruleset.Map
	}
	return v, false
}
