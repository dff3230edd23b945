package gamelift

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain/excerpt"
)

// violation is the first constraint that an input violates. Its path is collected while the walk returns.
type violation struct {
	path    []string // innermost first
	value   string   // in a form that the client may see
	problem string
}

// check returns InvalidRequestException for the first constraint that the input violates. In each structure, missing
// members are reported before invalid ones.
func (c *constraint) check(input any) error {
	v := c.walk(reflect.ValueOf(input).Elem())
	if v == nil {
		return nil
	}
	slices.Reverse(v.path)
	path := strings.TrimPrefix(strings.Join(v.path, ""), ".")
	if v.value == "" {
		return invalid("1 validation error detected: Value at '%s' failed to satisfy constraint: %s", path, v.problem)
	}
	return invalid("1 validation error detected: Value %s at '%s' failed to satisfy constraint: %s", v.value, path, v.problem)
}

// walk checks v, which must not be nil.
func (c *constraint) walk(v reflect.Value) *violation {
	switch c.kind {
	case reflect.String:
		return c.checkString(v.String())
	case reflect.Int32, reflect.Int64:
		return c.checkNumber(float64(v.Int()), v)
	case reflect.Float32, reflect.Float64:
		return c.checkNumber(v.Float(), v)
	case reflect.Slice:
		return c.checkList(v)
	case reflect.Map:
		return c.checkMap(v)
	case reflect.Struct:
		if c.time {
			return c.checkTime(v)
		}
		return c.checkMembers(v)
	default:
		return nil
	}
}

func (c *constraint) checkMembers(v reflect.Value) *violation {
	for i := range c.members {
		m := &c.members[i]
		if m.required && m.absent(v.Field(m.index)) {
			return &violation{path: []string{"." + m.name}, problem: "Member must not be null"}
		}
	}
	for i := range c.members {
		m := &c.members[i]
		if m.free {
			continue
		}
		member := v.Field(m.index)
		if m.absent(member) {
			continue
		}
		if m.pointer {
			member = member.Elem()
		}
		if broken := m.walk(member); broken != nil {
			return broken.at("." + m.name)
		}
	}
	return nil
}

// absent reports whether a member was not given. Enums are strings by value, and no enum value is empty.
func (c *constraint) absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return v.IsNil()
	case reflect.String:
		return v.Len() == 0
	default:
		return false
	}
}

func (c *constraint) checkString(s string) *violation {
	switch {
	case len(c.enum) > 0 && !slices.Contains(c.enum, s):
		return c.broken(s, "Member must satisfy enum value set: [%s]", strings.Join(c.enum, ", "))
	case c.max != nil && float64(len(s)) > *c.max && float64(utf8.RuneCountInString(s)) > *c.max:
		return c.broken(s, "Member must have length less than or equal to %s", plainNumber(*c.max))
	case c.min != nil && float64(len(s)) < *c.min*utf8.UTFMax && float64(utf8.RuneCountInString(s)) < *c.min:
		return c.broken(s, "Member must have length greater than or equal to %s", plainNumber(*c.min))
	case c.pattern != nil && !c.pattern.match(s):
		return c.broken(s, "Member must satisfy regular expression pattern: %s", c.pattern.source)
	default:
		return nil
	}
}

func (c *constraint) checkNumber(n float64, v reflect.Value) *violation {
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0):
		return c.brokenNumber(v, "Member must be a finite number")
	case c.min != nil && n < *c.min:
		return c.brokenNumber(v, "Member must have value greater than or equal to %s", plainNumber(*c.min))
	case c.max != nil && n > *c.max:
		return c.brokenNumber(v, "Member must have value less than or equal to %s", plainNumber(*c.max))
	default:
		return nil
	}
}

func (c *constraint) checkTime(v reflect.Value) *violation {
	// Not from its milliseconds, which a CBOR client can make overflow.
	if seconds := v.Addr().Interface().(*time.Time).Unix(); seconds < -timeMax || seconds > timeMax {
		return &violation{problem: "Member must be a time before the year 10000"}
	}
	return nil
}

func (c *constraint) checkList(v reflect.Value) *violation {
	switch size := v.Len(); {
	case c.max != nil && float64(size) > *c.max:
		return c.brokenSize(size, "less", *c.max)
	case c.min != nil && float64(size) < *c.min:
		return c.brokenSize(size, "greater", *c.min)
	case c.elem == nil || c.elem.free: // a blob, or elements without constraints
		return nil
	}
	for i := range v.Len() {
		if broken := c.elem.walk(v.Index(i)); broken != nil {
			return broken.at("[" + strconv.Itoa(i) + "]")
		}
	}
	return nil
}

// checkMap checks the keys in order, so that the same input always gets the same answer.
func (c *constraint) checkMap(v reflect.Value) *violation {
	if c.free || v.Len() == 0 {
		return nil
	}
	for _, key := range sortedKeys(v) {
		if broken := c.key.walk(key); broken != nil {
			return broken.at("{key}")
		}
		if broken := c.elem.walk(v.MapIndex(key)); broken != nil {
			if c.key.sensitive {
				return broken.at("{…}")
			}
			return broken.at("{" + excerpt.Short(key.String()) + "}")
		}
	}
	return nil
}

func (v *violation) at(place string) *violation {
	v.path = append(v.path, place)
	return v
}

func (c *constraint) broken(s, problem string, args ...any) *violation {
	value := "'" + excerpt.Short(s) + "'"
	if c.sensitive {
		value = fmt.Sprintf("(%d characters, not shown)", utf8.RuneCountInString(s))
	}
	return &violation{value: value, problem: fmt.Sprintf(problem, args...)}
}

func (c *constraint) brokenNumber(v reflect.Value, problem string, args ...any) *violation {
	value := "(not shown)"
	switch {
	case c.sensitive:
	case v.CanInt():
		value = "'" + strconv.FormatInt(v.Int(), 10) + "'"
	default:
		value = "'" + plainNumber(v.Float()) + "'"
	}
	return &violation{value: value, problem: fmt.Sprintf(problem, args...)}
}

func (c *constraint) brokenSize(size int, than string, limit float64) *violation {
	value := fmt.Sprintf("of length %d", size)
	return &violation{value: value, problem: fmt.Sprintf("Member must have length %s than or equal to %s", than, plainNumber(limit))}
}

func plainNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
