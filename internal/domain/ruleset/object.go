package ruleset

import (
	"fmt"
	"math"
	"slices"
)

// object is a JSON object of the rule set, with the properties that a step of an expansion replaces.
type object struct {
	r    *reader
	n    *node
	path string
	step map[string]stepValue // by property
	into *[]located           // where problems go; nil for the reader's
}

// stepValue replaces a property in a step.
type stepValue struct {
	n    *node
	path string // of the value in the expansions
}

func (r *reader) fail(at int, path, format string, args ...any) {
	r.problems = append(r.problems, located{at, Problem{path, fmt.Sprintf(format, args...)}})
}

func (r *reader) warn(at int, path, format string, args ...any) {
	r.warnings = append(r.warnings, located{at, Problem{path, fmt.Sprintf(format, args...)}})
}

// has returns a property, or nil.
func (o object) has(name string) (*node, bool) {
	if v, ok := o.step[name]; ok {
		return v.n, true
	}
	n, ok := o.n.members[name]
	return n, ok
}

func (o object) join(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// fail reports a problem with a property, at its position or, if it is missing, at the object's.
func (o object) fail(name, format string, args ...any) {
	l := located{o.n.at, Problem{o.join(name), fmt.Sprintf(format, args...)}}
	if v, ok := o.step[name]; ok {
		l.at, l.Path, l.Message = v.n.at, v.path, l.Path+": "+l.Message
	} else if n, ok := o.n.members[name]; ok {
		l.at = n.at
	}
	if o.into != nil {
		*o.into = append(*o.into, l)
		return
	}
	o.r.problems = append(o.r.problems, l)
}

// known warns of all properties except names.
func (o object) known(names ...string) {
	for i, key := range o.n.keys {
		if !slices.Contains(names, key) {
			o.r.warn(o.n.items[i].at, o.join(cut(key)), "the property is unknown here and ignored%s", didYouMean(key, names))
		}
	}
}

// number reads a number, which may be written as text.
func (o object) number(name string) (x float64, given, ok bool) {
	n, given := o.has(name)
	if !given {
		return 0, false, false
	}
	if n.kind == jsonNumber || n.kind == jsonString {
		x, ok = parseDecimal(n.text)
	}
	return x, true, ok
}

// atLeastZero reads an optional number that must not be negative.
func (o object) atLeastZero(name string) (x float64, given bool) {
	x, given, ok := o.number(name)
	if given && (!ok || x < 0) {
		n, _ := o.has(name)
		o.fail(name, "got %s, want a number of at least 0", n.shown())
		return 0, false
	}
	return x, given
}

// whole reads an optional whole number.
func (o object) whole(name string, least int32) (x int32, given bool) {
	number, given, ok := o.number(name)
	if !given {
		return 0, false
	}
	if !ok || number != math.Trunc(number) || number < float64(least) || number > math.MaxInt32 {
		n, _ := o.has(name)
		o.fail(name, "got %s, want a whole number of at least %d", n.shown(), least)
		return 0, false
	}
	return int32(number), true
}

// required is whole for a required property.
func (o object) required(name string, least int32) (x int32, ok bool) {
	if _, given := o.has(name); !given {
		o.fail(name, "it is missing, want a whole number of at least %d", least)
		return 0, false
	}
	return o.whole(name, least)
}

// text reads a required, non-empty string.
func (o object) text(name string) (string, bool) {
	n, given := o.has(name)
	switch {
	case !given:
		o.fail(name, "it is missing, want a string")
	case n.kind != jsonString:
		o.fail(name, "got %s, want a string", n.shown())
	case n.text == "":
		o.fail(name, "it is empty")
	default:
		return n.text, true
	}
	return "", false
}

// choice is one of the permitted words of a property.
type choice[T any] struct {
	word  string
	means T
}

// choose reads an optional word of a closed set. It returns otherwise if the property is missing or another word.
func choose[T any](o object, name string, otherwise T, choices []choice[T]) (T, bool) {
	n, given := o.has(name)
	if !given {
		return otherwise, true
	}
	if n.kind == jsonString {
		for _, c := range choices {
			if c.word == n.text {
				return c.means, true
			}
		}
	}
	o.fail(name, "got %s, want %s", n.shown(), words(choices))
	return otherwise, false
}

func words[T any](choices []choice[T]) string {
	s := ""
	for i, c := range choices {
		switch {
		case i > 0 && i == len(choices)-1:
			s += " or "
		case i > 0:
			s += ", "
		}
		s += c.word
	}
	return s
}

// list reads a list of objects and calls each with its path: teams[red], or teams[2] without a name.
func (o object) list(name string, each func(i int, element object)) {
	n, given := o.has(name)
	if !given {
		return
	}
	if n.kind != jsonArray {
		o.fail(name, "got %s, want a list", n.shown())
		return
	}
	for i, item := range n.items {
		path := fmt.Sprintf("%s[%d]", o.join(name), i)
		if item.kind != jsonObject {
			o.r.fail(item.at, path, "got %s, want an object", item.shown())
			continue
		}
		if named := item.members["name"]; named != nil && named.kind == jsonString && named.text != "" {
			path = fmt.Sprintf("%s[%s]", o.join(name), cut(named.text))
		}
		each(i, object{r: o.r, n: item, path: path})
	}
}

// failAt reports a problem with a part of a property.
func (o object) failAt(name, below string, at int, message string) {
	l := located{at, Problem{o.join(name) + below, message}}
	if v, ok := o.step[name]; ok {
		l.Path, l.Message = v.path+below, o.join(name)+": "+message
	}
	if o.into != nil {
		*o.into = append(*o.into, l)
		return
	}
	o.r.problems = append(o.r.problems, l)
}
