// Package manual describes the command line for other programs: completions for bash, zsh and fish, and manual pages. Everything comes from the parser's own
// model of the commands, so that no flag can be missing.
package manual

import (
	"cmp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// values says what a shell offers for a value.
type values int

const (
	free  values = iota // nothing
	files               // names of files and directories
	directories
	words // a fixed set
)

// command is one command of the tree, without hidden parts.
type command struct {
	name      string // as typed: "muster cluster status"
	help      string
	detail    string
	flags     []option // its own, then those of the commands around it
	arguments []option
	children  []*command
	preset    *command // the child that is meant if none is named
}

// option is a flag or an argument.
type option struct {
	name     string // without --
	shown    string // "--data=DIR"; "FILE" of an argument
	help     string
	takes    bool // a value
	many     bool // of an argument: it may be repeated
	required bool
	instead  string // the group of flags of which one is given
	values   values
	words    []string // of values words
	envs     []string // variables that have the value as well
	global   bool     // of every command
}

// read copies what people should see of a node and of those below it.
func read(node *kong.Node) *command {
	c := &command{name: node.FullPath(), help: node.Help, detail: node.Detail}
	for around := node; around != nil; around = around.Parent {
		for _, f := range around.Flags {
			if !f.Hidden && !slices.ContainsFunc(c.flags, func(o option) bool { return o.name == f.Name }) {
				c.flags = append(c.flags, flagOf(f, around.Parent == nil))
			}
		}
	}
	for _, p := range node.Positional {
		o := option{name: p.Name, shown: strings.ToUpper(p.Name), help: p.Help, takes: true, many: p.IsCumulative(), required: p.Required}
		o.values, o.words = valuesOf(p, cmp.Or(p.Tag.PlaceHolder, strings.ToUpper(p.Name)))
		c.arguments = append(c.arguments, o)
	}
	for _, child := range node.Children {
		if !child.Hidden {
			c.children = append(c.children, read(child))
			if child == node.DefaultCmd {
				c.preset = c.children[len(c.children)-1]
			}
		}
	}
	return c
}

// typed lists the flags that may follow the command's name, including those of its preset.
func (c *command) typed() []option {
	list := slices.Clone(c.flags)
	if c.preset != nil {
		for _, f := range c.preset.flags {
			if !slices.ContainsFunc(list, func(o option) bool { return o.name == f.name }) {
				list = append(list, f)
			}
		}
	}
	return list
}

func flagOf(f *kong.Flag, global bool) option {
	o := option{name: f.Name, shown: "--" + f.Name, help: f.Help, takes: !f.IsBool() && !f.IsCounter(), required: f.Required, instead: strings.Join(f.Xor, " "), envs: f.Envs, global: global}
	if f.Negated || f.Tag.Negatable != "" {
		o.shown = "--[no-]" + f.Name
	}
	if o.takes {
		o.values, o.words = valuesOf(f.Value, f.PlaceHolder)
		shown := f.FormatPlaceHolder()
		if f.PlaceHolder == "" && o.values == words {
			shown = strings.Join(o.words, "|")
		}
		o.shown += "=" + shown
	}
	return o
}

func valuesOf(v *kong.Value, placeholder string) (values, []string) {
	switch {
	case v.Enum != "":
		return words, slices.DeleteFunc(v.EnumSlice(), func(word string) bool { return word == "" })
	case strings.Contains(placeholder, "|"): // the program checks the value itself, because its error is better or the value may come from elsewhere
		return words, strings.Split(placeholder, "|")
	case placeholder == "DIR" || v.Tag.Type == "existingdir":
		return directories, nil
	case strings.Contains(placeholder, "FILE") || v.Tag.Type == "path" || v.Tag.Type == "existingfile":
		return files, nil
	}
	return free, nil
}

// all lists a command and those below it.
func (c *command) all() []*command {
	list := []*command{c}
	for _, child := range c.children {
		list = append(list, child.all()...)
	}
	return list
}

// names are those of its commands.
func (c *command) names() (list []string) {
	for _, child := range c.children {
		list = append(list, child.last())
	}
	return list
}

// last is the last word of its name.
func (c *command) last() string { return c.name[strings.LastIndexByte(c.name, ' ')+1:] }

// brief is the first sentence of a help text, for one line of a list.
func brief(help string) string {
	if end := strings.Index(help, ". "); end >= 0 {
		return help[:end]
	}
	return strings.TrimSuffix(help, ".")
}
