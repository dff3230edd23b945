package audit

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
)

// fact is one field of a record, as text.
type fact struct{ field, value string }

// hidden lists fields whose values entries omit, because they may be the caller's secrets or are the service's bookkeeping. Entries record that
// a caller's field has changed.
var hidden = map[string]bool{"Parameters": true, "CustomEventData": true, "GameSessionData": true, "Data": true, "Body": true, "Hash": true, "LaunchParameters": true, "Document": true}

var bookkeeping = map[string]bool{"Changed": true, "EndedNo": true, "Created": true, "Updated": true, "No": true, "Region": true, "Account": true, "Holder": true}

const (
	depthMax    = 6
	elementsMax = 16 // of a list of records
)

// factsOf returns the non-zero exported fields of a record, each on one line.
func factsOf(record any) (all []fact) {
	if record == nil {
		return nil
	}
	flatten(&all, "", reflect.ValueOf(record), 0)
	slices.SortStableFunc(all, func(a, b fact) int { return cmp.Compare(a.field, b.field) })
	return all
}

func flatten(all *[]fact, name string, v reflect.Value, depth int) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct && depth < depthMax {
		if _, ok := v.Interface().(fmt.Stringer); !ok {
			for i := range v.NumField() {
				f := v.Type().Field(i)
				if !f.IsExported() || bookkeeping[f.Name] {
					continue
				}
				inner := name
				if !f.Anonymous {
					inner = strings.TrimPrefix(name+"."+f.Name, ".")
				}
				flatten(all, inner, v.Field(i), depth+1)
			}
			return
		}
	}
	if v.Kind() == reflect.Slice && v.Len() > 0 && isRecord(v.Type().Elem()) {
		for i := range min(v.Len(), elementsMax) {
			flatten(all, name+"["+strconv.Itoa(i)+"]", v.Index(i), depth+1)
		}
		return
	}
	if v.IsZero() || name == "" {
		return
	}
	*all = append(*all, fact{name, text(name[strings.LastIndexByte(name, '.')+1:], v)})
}

// isRecord reports whether elements of a type have fields, which are shown one by one, because some of them may be hidden.
func isRecord(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && !t.Implements(reflect.TypeFor[fmt.Stringer]())
}

func text(name string, v reflect.Value) string {
	switch x := v.Interface().(type) {
	case domain.Time:
		return x.Std().UTC().Format(time.RFC3339)
	case []byte:
		return strconv.Itoa(len(x)) + " bytes"
	}
	switch {
	case isRecord(v.Type()), v.Kind() == reflect.Map: // its contents may be hidden
		return "(changed)"
	case hidden[name]:
		shown := fmt.Sprint(v.Interface())
		return fmt.Sprintf("(%d bytes, sum %x)", len(shown), Hash([]byte(shown))[:4])
	}
	return fmt.Sprint(v.Interface())
}

// differ returns the fields that differ, in the order of their names.
func differ(before, after []fact) (changes []Change) {
	add := func(field, before, after string) {
		if before != after && len(changes) < changesMax {
			changes = append(changes, Change{field, before, after}.cut())
		}
	}
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].field < after[0].field:
			add(before[0].field, before[0].value, "")
			before = before[1:]
		case len(before) == 0 || after[0].field < before[0].field:
			add(after[0].field, "", after[0].value)
			after = after[1:]
		default:
			add(after[0].field, before[0].value, after[0].value)
			before, after = before[1:], after[1:]
		}
	}
	return changes
}
