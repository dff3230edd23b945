package settings

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A support bundle contains the values of numbers, times, sizes and switches, and of texts with bundle:"yes": these cannot contain a secret. For any other text it
// reports only that it is set, so a new setting is not shown until its declaration allows that.

func bundles(field reflect.StructField) bool {
	switch field.Type {
	case reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int32](), reflect.TypeFor[time.Duration](), reflect.TypeFor[Bytes]():
		return true
	}
	return field.Tag.Get("bundle") == "yes"
}

func bundled(field reflect.StructField, value reflect.Value) string {
	switch {
	case bundles(field):
		return Shown(field.Tag.Get("name"), fmt.Sprint(value.Interface()))
	case value.IsZero():
		return ""
	}
	return "set"
}

// secretLeast is the minimum length of a text that Secrets returns: shorter texts occur in many words.
const secretLeast = 6

// Secrets returns the texts of settings that a support bundle must not contain, the longest first: values, their words, and parts of URLs in them.
func (s Settings) Secrets() (all []string) {
	v := reflect.ValueOf(s)
	add := func(text string) {
		if len(text) >= secretLeast {
			all = append(all, text)
		}
	}
	for i := range v.NumField() {
		text, ok := v.Field(i).Interface().(string)
		if !ok || v.Type().Field(i).Tag.Get("bundle") == "yes" && !strings.Contains(text, "@") {
			continue
		}
		add(text)
		for word := range strings.FieldsSeq(text) {
			add(word)
			at := word
			if _, after, found := strings.Cut(word, "="); found && !strings.Contains(strings.SplitN(word, "=", 2)[0], "://") {
				add(after)
				at = after
			}
			if u, err := url.Parse(at); err == nil && u.Host != "" {
				add(strings.Trim(u.EscapedPath(), "/"))
				add(u.RawQuery)
				if password, ok := u.User.Password(); ok {
					add(password)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(all)
}
