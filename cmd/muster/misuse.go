package main

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/alecthomas/kong"
)

var (
	noValue   = regexp.MustCompile(`: expected \w+ value but got "EOL" \(<EOL>\)$`)
	flagValue = regexp.MustCompile(`: expected \w+ value but got "(-[^"]*)" .*$`)
	noNumber  = regexp.MustCompile(`: expected a valid \d+ bit u?int but got (".*")$`)
	missing   = regexp.MustCompile(`^expected ("<.*)$`)
	ofCommand = regexp.MustCompile(`^(expected |missing |unexpected argument |unknown flag )`)
)

// misuse puts the parser's errors into words that need no knowledge of the parser, and names the command whose help shows the right use.
func misuse(err error) error {
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return err
	}
	text := err.Error()
	text = noValue.ReplaceAllString(text, ": want a value")
	text = flagValue.ReplaceAllString(text, ": want a value before the flag $1")
	text = noNumber.ReplaceAllString(text, ": $1: want a whole number")
	text = missing.ReplaceAllString(text, "missing arguments: $1")
	if ofCommand.MatchString(text) {
		node := parse.Context.Selected()
		if node == nil {
			node = parse.Context.Model.Node
		}
		text = fmt.Sprintf("%s; see %s --help", text, node.FullPath())
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}
