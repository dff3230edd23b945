package gamelift

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/musterhq/muster/internal/gamelift/model"
)

// constraint is a shape of the model bound to its Go type. It is compiled once, so that a check walks the input without
// look-ups.
type constraint struct {
	kind      reflect.Kind // of the value, after dereferencing a pointer
	pointer   bool
	time      bool
	sensitive bool // its value may not appear in a message
	min, max  *float64
	pattern   *pattern
	enum      []string
	members   []memberConstraint
	elem      *constraint // of a list or a map
	key       *constraint // of a map
	free      bool        // neither this shape nor any below it has anything to check
	slot      uintptr     // bytes of the Go value within its structure
	size      uintptr     // bytes of what it points to; same as slot without a pointer
}

type memberConstraint struct {
	index    int
	name     string
	required bool
	*constraint
}

// constraintPlans compiles and caches constraints. Two shapes may share a Go type (most strings do), so both form the
// key.
type constraintPlans struct {
	model    *model.Model
	patterns map[string]*pattern
	known    map[constraintKey]*constraint
}

type constraintKey struct {
	shape string
	typ   reflect.Type
}

func newConstraintPlans(m *model.Model) *constraintPlans {
	return &constraintPlans{model: m, patterns: map[string]*pattern{}, known: map[constraintKey]*constraint{}}
}

// plan fails if the model and the SDK's type disagree.
func (p *constraintPlans) plan(shapeName string, t reflect.Type) (*constraint, error) {
	key := constraintKey{shapeName, t}
	if known, ok := p.known[key]; ok {
		return known, nil
	}
	shape, ok := p.model.Shapes[shapeName]
	if !ok {
		return nil, fmt.Errorf("shape %s is not in the model", shapeName)
	}
	c := &constraint{sensitive: shape.Sensitive, min: shape.Min, max: shape.Max, enum: shape.Enum}
	p.known[key] = c
	base := t
	if t.Kind() == reflect.Pointer {
		c.pointer, base = true, t.Elem()
	}
	c.kind, c.time = base.Kind(), base == timeType
	c.slot, c.size = t.Size(), base.Size()
	if want, ok := goKinds[shape.Type]; !ok || !slices.Contains(want, c.kind) || c.time != (shape.Type == "timestamp") {
		return nil, fmt.Errorf("shape %s is a %s in the model and a %s in the SDK", shapeName, shape.Type, t)
	}
	if err := p.compile(c, shape, base); err != nil {
		return nil, fmt.Errorf("%s: %w", shapeName, err)
	}
	if shapeName == "PlayerDataMap" { // its keys are player ids, although the model does not say so
		c.key = hidden(c.key)
	}
	c.free = c.isFree()
	return c, nil
}

var goKinds = map[string][]reflect.Kind{
	"string":    {reflect.String},
	"boolean":   {reflect.Bool},
	"integer":   {reflect.Int32},
	"long":      {reflect.Int64},
	"float":     {reflect.Float32},
	"double":    {reflect.Float64},
	"timestamp": {reflect.Struct},
	"blob":      {reflect.Slice},
	"list":      {reflect.Slice},
	"map":       {reflect.Map},
	"structure": {reflect.Struct},
}

func (p *constraintPlans) compile(c *constraint, shape model.Shape, base reflect.Type) (err error) {
	switch shape.Type {
	case "string":
		if shape.Pattern != "" {
			c.pattern, err = p.pattern(shape.Pattern)
		}
	case "list":
		c.elem, err = p.plan(shape.Member, base.Elem())
		if err == nil && shape.Sensitive {
			c.elem = hidden(c.elem)
		}
	case "map":
		if c.key, err = p.plan(shape.Key, base.Key()); err == nil {
			c.elem, err = p.plan(shape.Value, base.Elem())
		}
	case "structure":
		err = p.compileMembers(c, shape, base)
	}
	return err
}

// hidden returns c for a place where the value is sensitive, regardless of its own shape.
func hidden(c *constraint) *constraint {
	h := *c
	h.sensitive = true
	return &h
}

func (p *constraintPlans) compileMembers(c *constraint, shape model.Shape, base reflect.Type) error {
	found := 0
	for i := range base.NumField() {
		f := base.Field(i)
		if !f.IsExported() || f.Name == "ResultMetadata" {
			continue
		}
		shapeName, ok := shape.Members[f.Name]
		if !ok {
			return fmt.Errorf("the SDK has a member %s that the model lacks", f.Name)
		}
		found++
		member, err := p.plan(shapeName, f.Type)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		c.members = append(c.members, memberConstraint{
			index: i, name: f.Name, required: slices.Contains(shape.Required, f.Name), constraint: member,
		})
	}
	if found != len(shape.Members) {
		return fmt.Errorf("the model has the members %v, the SDK %d of them", slices.Sorted(maps.Keys(shape.Members)), found)
	}
	return nil
}

func (p *constraintPlans) pattern(source string) (*pattern, error) {
	if known, ok := p.patterns[source]; ok {
		return known, nil
	}
	compiled, err := compilePattern(source)
	if err == nil {
		p.patterns[source] = compiled
	}
	return compiled, err
}

// isFree reports whether every value passes, so that the walk can stop above it.
func (c *constraint) isFree() bool {
	switch {
	case c.min != nil || c.max != nil || c.pattern != nil || c.enum != nil || c.time:
		return false
	case c.elem != nil && !c.elem.free, c.key != nil && !c.key.free:
		return false
	}
	switch c.kind {
	case reflect.Float32, reflect.Float64: // NaN is never free
		return false
	}
	for _, m := range c.members {
		if m.required || !m.free {
			return false
		}
	}
	return true
}
