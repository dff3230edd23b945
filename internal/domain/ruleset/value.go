package ruleset

import (
	"maps"
	"slices"
	"unicode/utf8"
)

// Bounds of a player's attributes: docs/spec/flexmatch.md#attributes.
const (
	AttributesMax = 10
	TextMax       = 100 // characters of a string, of a string in a list, and of a key of a map
	ListMax       = 100
	PairsMax      = 10
)

// TooLong reports whether a text has more than TextMax characters.
func TooLong(text string) bool { return len(text) > TextMax && utf8.RuneCountInString(text) > TextMax }

// Kind is the type of a value.
type Kind uint8

// None is the kind of a missing value.
const (
	None   Kind = iota
	String      // string, S on the wire
	Number      // number, N
	List        // string_list, SL
	Map         // string_number_map, SDM
)

var kindNames = [...]string{None: "nothing", String: "string", Number: "number", List: "string_list", Map: "string_number_map"}

func (k Kind) String() string { return kindNames[k] }

// Value is a player's value of an attribute. Only the field of its kind is set. Values share memory and are never changed.
type Value struct {
	Kind   Kind
	Number float64 // finite
	Text   string
	List   []string // without duplicates, in the order sent
	Map    []Entry  // by key
}

// Entry is one pair of a map.
type Entry struct {
	Key    string
	Number float64
}

// NamedValue is an attribute of a request.
type NamedValue struct {
	Name string
	Value
}

// ListOf makes a list of the distinct strings.
func ListOf(texts []string) Value { return Value{Kind: List, List: distinct(texts)} }

// MapOf makes a map value.
func MapOf(pairs map[string]float64) Value {
	v := Value{Kind: Map}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		v.Map = append(v.Map, Entry{Key: key, Number: pairs[key]})
	}
	return v
}

// Lookup returns the number of a key in a map.
func (v *Value) Lookup(key string) (number float64, ok bool) {
	i, ok := slices.BinarySearchFunc(v.Map, key, func(e Entry, key string) int {
		switch {
		case e.Key < key:
			return -1
		case e.Key > key:
			return 1
		default:
			return 0
		}
	})
	if !ok {
		return 0, false
	}
	return v.Map[i].Number, true
}

// Attribute is a declared player attribute. Its index in RuleSet.Attributes is its column in Player.Values.
type Attribute struct {
	Name    string
	Kind    Kind
	Default Value // Kind None: there is no default, and a player without a value cannot match
}
