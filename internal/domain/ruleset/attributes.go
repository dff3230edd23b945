package ruleset

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Attribute values have the limits of requests.
const (
	textMax = 100
	listMax = 100
	mapMax  = 10
)

var attributeTypes = []choice[Kind]{{"string", String}, {"number", Number}, {"string_list", List}, {"string_number_map", Map}}

func (r *reader) readAttributes(root object) {
	r.names.column = map[string]int{}
	root.list("playerAttributes", func(_ int, o object) {
		o.known("name", "type", "default")
		a := Attribute{}
		name, named := o.text("name")
		if _, taken := r.names.column[name]; named && taken {
			o.fail("name", "two attributes are called %s", quoted(name))
			named = false
		}
		if _, given := o.has("type"); !given {
			o.fail("type", "it is missing, want %s", words(attributeTypes))
		} else {
			a.Kind, _ = choose(o, "type", None, attributeTypes)
		}
		a.Name = name
		a.Default = readDefault(o, a.Kind)
		if named {
			r.names.column[name] = len(r.names.attributes)
			r.names.attributes = append(r.names.attributes, a)
		}
	})
	r.set.Attributes, r.set.column = r.names.attributes, r.names.column
}

// readDefault reads an attribute's default. An empty string is no default, whatever the type.
func readDefault(o object, kind Kind) Value {
	n, given := o.has("default")
	if !given || kind == None || n.kind == jsonString && n.text == "" {
		return Value{}
	}
	v, wrong := valueOf(n, kind)
	if wrong == "" {
		wrong = v.check()
	}
	if wrong != "" {
		o.fail("default", "got %s, want a value of type %s: %s", n.shown(), kind, wrong)
		return Value{}
	}
	return v.normal()
}

// valueOf converts a JSON value to an attribute's value. If it cannot, wrong describes the expected value.
func valueOf(n *node, kind Kind) (v Value, wrong string) {
	v.Kind = kind
	switch kind {
	case String:
		if n.kind != jsonString {
			return v, "a string"
		}
		v.Text = n.text
	case Number:
		ok := n.kind == jsonNumber || n.kind == jsonString
		if ok {
			v.Number, ok = parseDecimal(n.text)
		}
		if !ok {
			return v, "a number"
		}
	case List:
		if n.kind != jsonArray {
			return v, "a list of strings"
		}
		for _, item := range n.items {
			if item.kind != jsonString {
				return v, "a list of strings, not of " + item.shown()
			}
			v.List = append(v.List, item.text)
		}
	case Map:
		if n.kind != jsonObject {
			return v, "an object of numbers"
		}
		for i, item := range n.items {
			x, ok := parseDecimal(item.text)
			if !ok || item.kind != jsonNumber && item.kind != jsonString {
				return v, "an object of numbers, not of " + item.shown()
			}
			v.Map = append(v.Map, Entry{n.keys[i], x})
		}
	}
	return v, ""
}

// check returns the limit of attribute values that v exceeds; "" if none.
func (v *Value) check() string {
	text := func(s string) bool { return s != "" && (len(s) <= textMax || utf8.RuneCountInString(s) <= textMax) }
	switch v.Kind {
	case String:
		if !text(v.Text) {
			return "1 to 100 characters"
		}
	case Number:
		if !finite(v.Number) {
			return "a finite number"
		}
	case List:
		if len(v.List) > listMax {
			return "at most 100 strings"
		}
		for _, s := range v.List {
			if !text(s) {
				return "strings of 1 to 100 characters"
			}
		}
	case Map:
		if len(v.Map) > mapMax {
			return "at most 10 pairs"
		}
		for _, e := range v.Map {
			if !text(e.Key) {
				return "keys of 1 to 100 characters"
			}
			if !finite(e.Number) {
				return "finite numbers"
			}
		}
	}
	return ""
}

// normal removes a list's duplicates and sorts a map, in a copy.
func (v Value) normal() Value {
	switch v.Kind {
	case List:
		v.List = distinct(v.List)
	case Map:
		if !slices.IsSortedFunc(v.Map, byKey) {
			v.Map = slices.Clone(v.Map)
			slices.SortFunc(v.Map, byKey)
		}
	}
	return v
}

func byKey(a, b Entry) int { return cmp.Compare(a.Key, b.Key) }

// distinct returns the list without duplicates, or the same list if it has none. It must be fast for long lists, because it gets them
// from requests before their length is checked.
func distinct(list []string) []string {
	seen := make(map[string]struct{}, len(list))
	for i, s := range list {
		if _, again := seen[s]; again {
			return without(list, i, seen)
		}
		seen[s] = struct{}{}
	}
	return list
}

// without copies a list whose first i strings are distinct and in seen.
func without(list []string, i int, seen map[string]struct{}) []string {
	kept := slices.Clone(list[:i])
	for _, s := range list[i:] {
		if _, again := seen[s]; !again {
			seen[s] = struct{}{}
			kept = append(kept, s)
		}
	}
	return kept
}
