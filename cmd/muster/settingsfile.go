package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
)

// fileValue is a setting's text and its line number.
type fileValue struct {
	text string
	line int
}

// readSettingsFile reads one JSON object of settings. The names are those of the flags; the values are strings, numbers or
// booleans. Every error names the file and line.
func readSettingsFile(name string, known []string) (map[string]fileValue, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	line := func() int { return 1 + bytes.Count(content[:decoder.InputOffset()], []byte("\n")) }
	fail := func(format string, args ...any) (map[string]fileValue, error) {
		return nil, fmt.Errorf("%s:%d: %s", name, line(), fmt.Sprintf(format, args...))
	}

	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return fail("want one JSON object, such as {\"listen\": \":8080\"}")
	}
	values := map[string]fileValue{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return fail("%v", err)
		}
		key := token.(string) // the decoder returns only strings for keys
		if !slices.Contains(known, key) {
			return fail("%q is not a setting%s", key, didYouMean(key, known, strconv.Quote))
		}
		if earlier, twice := values[key]; twice {
			return fail("%q is given twice, the first time on line %d", key, earlier.line)
		}
		value, err := decoder.Token()
		if err != nil {
			return fail("%q: %v", key, err)
		}
		switch value.(type) {
		case string, json.Number, bool:
			values[key] = fileValue{fmt.Sprint(value), line()}
		default:
			return fail("%q: want a string, a number, true or false", key)
		}
	}
	switch _, err := decoder.Token(); {
	case err == io.EOF:
		return fail("the object has no end: want a } at the end")
	case err != nil:
		return fail("%v", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return fail("want nothing after the object")
	}
	return values, nil
}
