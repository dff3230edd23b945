package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/identity"
)

// Bounds of the form of an action.
const (
	formBytesMax = 64 << 10
	textMax      = 1024 // characters of a field that sets no bound of its own
	choicesMax   = 200  // that a form lists
	seenMax      = 16 << 10
)

// form is what a person fills in for an action.
type form struct {
	ID     string // of the object that the path names; empty: the action makes a new one
	Title  string
	Effect string // what the action does, in a sentence
	// Confirm is the name to type before the action, which then needs a reason as well; empty: the action destroys nothing.
	Confirm string
	Fields  []*field
	Problem string // with the form as a whole; empty: none

	// Now is what the object has that the action replaces, in words. A form that was made when it had something else is refused; empty: the action replaces nothing.
	Now string

	// Grave says that the action needs a reason although it destroys nothing.
	Grave bool

	// Made is a key that the action has made, whose secret the answer shows; nil: it made none.
	Made *identity.AccessKey

	arn string // of the object, where the service API takes that
}

// field is one input.
type field struct {
	Name, Label, Hint string
	Kind              kind
	Value             string   // a number, a text, or the choice
	Values            []string // of the kind many
	Choices           []pick
	Required          bool
	Most              int    // characters; 0: textMax
	Problem           string // empty: none
}

// kind is how a field is shown and read.
type kind string

const (
	textLine  kind = ""      // choices are suggestions
	textLines kind = "lines" // with a value on each
	source    kind = "code"  // with tabs, too
	hidden    kind = "hidden"
	oneOf     kind = "one"  // of the choices
	manyOf    kind = "many" // of the choices
	onOff     kind = "check"
)

// pick is a value to choose.
type pick struct{ Value, Text string }

// The fields that forms of all actions have beside their own.
const (
	reasonField  = "reason"
	confirmField = "confirm"
	seenField    = "seen"
)

// finish adds the fields that every form has. It is called once all others are there.
func (f *form) finish() {
	reason := &field{Name: reasonField, Label: "Reason", Hint: "kept in the audit log", Most: audit.ReasonMax, Required: f.Grave || f.Confirm != ""}
	if f.Confirm != "" {
		f.Fields = append(f.Fields, &field{Name: confirmField, Label: "Name", Hint: "to confirm, type " + f.Confirm, Required: true})
	}
	f.Fields = append(f.Fields, reason)
	if f.Now != "" {
		f.Fields = append(f.Fields, &field{Name: seenField, Label: "What it had", Kind: hidden, Value: f.Now, Most: seenMax})
	}
}

// stale refuses a sent form that was made from another state of its object than the present one. The form that comes back was made from the present one.
func (f *form) stale() {
	if f.Now == "" {
		return
	}
	if seen := f.field(seenField); seen.Value != f.Now {
		f.Problem = "It was changed after this form was made. It had " + cmp.Or(strings.ReplaceAll(seen.Value, "\n", " "), "something that this form does not say") + ". It now has " + strings.ReplaceAll(f.Now, "\n", " ") +
			". Nothing was changed: send the form again to replace that with what you see below."
		seen.Value, seen.Problem = f.Now, ""
	}
}

// field returns a field that the form has.
func (f *form) field(name string) *field {
	i := slices.IndexFunc(f.Fields, func(x *field) bool { return x.Name == name })
	if i < 0 {
		panic("console: the form has no field " + name)
	}
	return f.Fields[i]
}

func (f *form) value(name string) string { return f.field(name).Value }

// number reads a field that holds a whole number. It reports anything else as the problem of the field, and returns 0.
func (f *form) number(name string, least, most int) int {
	x := f.field(name)
	n, err := strconv.Atoi(x.Value)
	if err != nil || n < least || n > most {
		x.refuse("a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most))
		return 0
	}
	return n
}

// valid reports whether no field has a problem.
func (f *form) valid() bool {
	return f.Problem == "" && !slices.ContainsFunc(f.Fields, func(x *field) bool { return x.Problem != "" })
}

// refuse says what was expected in place of the value.
func (x *field) refuse(expected string) {
	shown := x.Value
	if x.Kind == manyOf {
		shown = strings.Join(x.Values, ", ")
	}
	if len(shown) > 100 {
		shown = strings.ToValidUTF8(shown[:100], "") + "…"
	}
	x.Problem = x.Label + " is " + strconv.Quote(shown) + "; want " + expected + "."
}

// fill takes values from a query or a sent form. Fields that are not given keep what they have.
func (f *form) fill(from url.Values) {
	for _, x := range f.Fields {
		all, given := from[x.Name]
		switch {
		case !given:
		case x.Kind == manyOf:
			x.Values = all
		default:
			x.Value = strings.TrimSpace(strings.ReplaceAll(all[0], "\r\n", "\n"))
		}
	}
}

// sent takes the values of a sent form, in which a box that is not checked is missing, and checks them. A form that does not say what its object had is stale. It refuses what no page of the console sends.
func (f *form) sent(from url.Values) error {
	for name, all := range from {
		i := slices.IndexFunc(f.Fields, func(x *field) bool { return x.Name == name })
		switch {
		case i < 0:
			return domain.Refuse(domain.Invalid, "The form has no field %.40q; want %s.", name, f.names())
		case len(all) > 1 && f.Fields[i].Kind != manyOf || len(all) > choicesMax:
			return domain.Refuse(domain.Invalid, "The form has the field %.40q %d times; want it once.", name, len(all))
		}
	}
	for _, x := range f.Fields {
		if x.Kind == onOff || x.Kind == manyOf || x.Name == seenField {
			x.Value, x.Values = "", nil
		}
	}
	f.fill(from)
	for _, x := range f.Fields {
		x.check()
	}
	if f.Confirm != "" {
		if x := f.field(confirmField); x.Problem == "" && x.Value != f.Confirm {
			x.refuse(f.Confirm)
		}
	}
	f.stale()
	return nil
}

func (f *form) names() string {
	var all []string
	for _, x := range f.Fields {
		all = append(all, x.Name)
	}
	return strings.Join(all, ", ")
}

func (x *field) check() {
	offered := func(value string) bool {
		return slices.ContainsFunc(x.Choices, func(c pick) bool { return c.Value == value })
	}
	control := func(r rune) bool {
		return unicode.IsControl(r) && (r != '\n' || x.Kind != textLines && x.Kind != hidden && x.Kind != source) && (r != '\t' || x.Kind != source)
	}
	switch {
	case x.Required && x.Value == "" && len(x.Values) == 0:
		x.Problem = x.Label + " is empty; it is required."
		if x.Kind == manyOf {
			x.Problem = x.Label + ": choose at least one."
		}
	case utf8.RuneCountInString(x.Value) > x.Max():
		x.refuse("at most " + strconv.Itoa(x.Max()) + " characters")
	case !utf8.ValidString(x.Value) || strings.ContainsFunc(x.Value, control):
		x.refuse("text without control characters")
	case x.Kind == oneOf && x.Value != "" && !offered(x.Value), x.Kind == manyOf && !each(x.Values, offered):
		x.refuse("one of those that the form offers")
	}
}

func each(values []string, ok func(string) bool) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return !ok(v) })
}

// readForm reads the body of a sent form.
func readForm(w http.ResponseWriter, r *http.Request, most int64) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	if err := r.ParseForm(); err != nil {
		return nil, domain.Refuse(domain.Invalid, "The form cannot be read, or has more than %d bytes.", most)
	}
	return r.PostForm, nil
}

// Max is how many characters a person may type.
func (x *field) Max() int { return cmp.Or(x.Most, textMax) }

// Has reports whether a value is chosen.
func (x *field) Has(value string) bool {
	return x.Kind == manyOf && slices.Contains(x.Values, value) || x.Kind != manyOf && x.Value == value
}

// Described is the id of what describes the input: hint and problem.
func (x *field) Described() string {
	var ids []string
	if x.Hint != "" {
		ids = append(ids, x.Name+"-hint")
	}
	if x.Problem != "" {
		ids = append(ids, x.Name+"-problem")
	}
	return strings.Join(ids, " ")
}
