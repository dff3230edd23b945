package ruleset

import (
	"fmt"
	"math"
)

// AttributeError is the error of a player's value that is invalid for the attribute that the rule set declares.
type AttributeError struct {
	Attribute string
	Got       Kind
	Want      string
}

func (e *AttributeError) Error() string {
	return fmt.Sprintf("attribute %s: got a %s, want %s", quoted(e.Attribute), e.Got, e.Want)
}

// Player returns a player's values, one for each declared attribute: as sent, or else its default, or else of kind None, in which case
// the player's ticket cannot match (see Missing). It ignores undeclared attributes. The error is an *AttributeError.
func (rs *RuleSet) Player(sent []NamedValue) ([]Value, error) {
	values := make([]Value, len(rs.Attributes))
	for i := range rs.Attributes {
		values[i] = rs.Attributes[i].Default
	}
	for i := range sent {
		v := &sent[i]
		column, declared := rs.column[v.Name]
		if !declared {
			continue
		}
		if want := rs.Attributes[column].Kind; v.Kind != want {
			return nil, &AttributeError{v.Name, v.Kind, want.String()}
		}
		if wrong := v.check(); wrong != "" {
			return nil, &AttributeError{v.Name, v.Kind, wrong}
		}
		values[column] = v.normal()
	}
	return values, nil
}

// Missing returns the first attribute that a player has no value for.
func (rs *RuleSet) Missing(values []Value) (attribute string, missing bool) {
	for i := range values {
		if values[i].Kind == None {
			return rs.Attributes[i].Name, true
		}
	}
	return "", false
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
