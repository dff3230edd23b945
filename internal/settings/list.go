package settings

import (
	"fmt"
	"reflect"
)

// Setting is a setting for display, without secrets.
type Setting struct {
	Name, Value, Default string
	Form                 string // of its value, such as SIZE or TIME; empty: a switch
	Help                 string // what it does, with the unit
	Bundled              string // its value in a support bundle, or "set" if the bundle omits the value
	Reloads              bool   // a reload applies a new value; otherwise only the next start does
	From                 string // which flag, variable or line of a file the value comes from, or "default"
}

// All returns every setting in the order of the fields. from names the source of a setting; nil: sources are not known.
func (s Settings) All(from func(name string) string) (all []Setting) {
	values, defaults := reflect.ValueOf(s), reflect.ValueOf(Defaults())
	for i := range values.NumField() {
		field := values.Type().Field(i)
		name := field.Tag.Get("name")
		shown := func(of reflect.Value) string { return Shown(name, fmt.Sprint(of.Field(i).Interface())) }
		x := Setting{Name: name, Value: shown(values), Default: shown(defaults), Form: field.Tag.Get("placeholder"), Help: field.Tag.Get("help"), Reloads: Reloads(field), Bundled: bundled(field, values.Field(i))}
		if from != nil {
			x.From = from(name)
		}
		all = append(all, x)
	}
	return all
}
