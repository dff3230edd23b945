package gamelift

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The SDK's types have no struct tags, and its CBOR clients are strict about the encoding of values: a float32 member must
// not arrive as float64, and a timestamp needs its tag. So both codecs encode from the same plan, compiled once per type:
// unset members are omitted, and the SDK's internal members are never written.

type wireKind uint8

const (
	wireString wireKind = iota
	wireBool
	wireInt
	wireFloat  // 32 bits
	wireDouble // 64 bits
	wireTime
	wireBlob
	wireList
	wireMap
	wireStruct
)

type wireType struct {
	kind    wireKind
	pointer bool // nil means unset
	fields  []wireField
	elem    *wireType // of a list or a map
}

type wireField struct {
	index    int
	jsonName []byte // with quotes and colon
	cborName []byte // with its head
	typ      *wireType
	always   bool // a result list: written even if empty, because scripts iterate over it
}

var timeType = reflect.TypeFor[time.Time]()

// wirePlans compiles and caches plans. One goroutine compiles all plans before any is used.
type wirePlans map[reflect.Type]*wireType

// output returns the plan of an operation's answer, in which lists are written even if empty.
func (p wirePlans) output(t reflect.Type) *wireType {
	shared := p.plan(t)
	own := *shared
	own.fields = slices.Clone(shared.fields)
	for i := range own.fields {
		own.fields[i].always = own.fields[i].typ.kind == wireList
	}
	return &own
}

func (p wirePlans) plan(t reflect.Type) *wireType {
	if known, ok := p[t]; ok {
		return known
	}
	w := new(wireType)
	p[t] = w // before its members are compiled, because a type may contain itself
	base := t
	if t.Kind() == reflect.Pointer {
		w.pointer, base = true, t.Elem()
	}
	switch base.Kind() {
	case reflect.String:
		w.kind = wireString
	case reflect.Bool:
		w.kind = wireBool
	case reflect.Int32, reflect.Int64:
		w.kind = wireInt
	case reflect.Float32:
		w.kind = wireFloat
	case reflect.Float64:
		w.kind = wireDouble
	case reflect.Slice:
		if base.Elem().Kind() == reflect.Uint8 {
			w.kind = wireBlob
			break
		}
		w.kind, w.elem = wireList, p.plan(base.Elem())
	case reflect.Map:
		w.kind, w.elem = wireMap, p.plan(base.Elem())
	case reflect.Struct:
		if base == timeType {
			w.kind = wireTime
			break
		}
		w.kind = wireStruct
		for i := range base.NumField() {
			f := base.Field(i)
			if !f.IsExported() || f.Name == "ResultMetadata" {
				continue
			}
			w.fields = append(w.fields, wireField{
				index:    i,
				jsonName: append(mustQuote(f.Name), ':'),
				cborName: append(appendCBORHead(nil, cborText, uint64(len(f.Name))), f.Name...),
				typ:      p.plan(f.Type),
			})
		}
	default:
		panic(fmt.Sprintf("gamelift: no wire form for %s", t)) // the SDK has introduced a new kind of member
	}
	return w
}

// unset reports whether member v is omitted.
func (f *wireField) unset(v reflect.Value) bool {
	if f.always {
		return false
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return v.IsNil()
	case reflect.String: // enums are strings by value, and no enum value is empty
		return v.Len() == 0
	default:
		return false
	}
}

func mustQuote(s string) []byte {
	quoted, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic("gamelift: quote " + s + ": " + err.Error())
	}
	return quoted
}

// sortedKeys returns the keys of a string-keyed map in order, so that equal answers have equal bytes.
func sortedKeys(v reflect.Value) []reflect.Value {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
