package manual

import (
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Page is one manual page.
type Page struct {
	Name string // of the file: muster-serve.1
	Text string // in roff, with the macros of man
}

// Release is what pages say at their edges.
type Release struct {
	Version string
	Date    time.Time // zero: none is said
}

// Pages returns a page of the program, and one of each command below it, which also describes the commands of that command.
func Pages(app *kong.Application, release Release, sections ...Section) []Page {
	root := read(app.Node)
	pages := []Page{{root.name + ".1", programPage(root, release, sections)}}
	for _, c := range root.children {
		pages = append(pages, Page{pageName(c.name) + ".1", commandPage(c, root.name, release)})
	}
	return pages
}

// Section is a part of the program's page that the model does not have. A paragraph that begins with a space stands as it is.
type Section struct {
	Title      string
	Paragraphs []string
}

func programPage(root *command, release Release, sections []Section) string {
	b := head(root.name, root.help, release)
	b.section("SYNOPSIS")
	b.synopsis(root)
	b.section("DESCRIPTION")
	b.paragraph(root.help)
	b.section("COMMANDS")
	for _, c := range root.children {
		b.term(c.last())
		b.text(c.help)
		b.text("See ")
		b.reference(pageName(c.name))
	}
	b.section("OPTIONS OF ALL COMMANDS")
	b.options(root.flags)
	for _, s := range sections {
		b.section(s.Title)
		for _, p := range s.Paragraphs {
			b.paragraph(p)
		}
	}
	return b.String()
}

func commandPage(c *command, program string, release Release) string {
	b := head(pageName(c.name), c.help, release)
	b.section("SYNOPSIS")
	for _, x := range c.all() {
		if len(x.children) == 0 {
			b.synopsis(x)
		}
	}
	b.section("DESCRIPTION")
	b.paragraph(c.help)
	if c.detail != "" {
		b.paragraph(c.detail)
	}
	if len(c.children) == 0 {
		b.details(c)
	} else {
		b.section("COMMANDS")
		for _, x := range c.all()[1:] {
			b.line(".SS " + escape(x.name))
			b.text(x.help)
			b.begun = true
			if x.detail != "" {
				b.paragraph(x.detail)
			}
			b.options(x.arguments)
			b.options(own(x.flags))
		}
	}
	b.section("SEE ALSO")
	b.reference(program)
	return b.String()
}

func (b *roff) details(c *command) {
	if len(c.arguments) > 0 {
		b.section("ARGUMENTS")
		b.options(c.arguments)
	}
	if flags := own(c.flags); len(flags) > 0 {
		b.section("OPTIONS")
		b.options(flags)
	}
}

// own are the flags that the program's page does not describe.
func own(flags []option) (list []option) {
	for _, f := range flags {
		if !f.global {
			list = append(list, f)
		}
	}
	return list
}

// pageName is the name of a command's page: muster-serve.
func pageName(command string) string { return strings.ReplaceAll(command, " ", "-") }

// roff writes the language of manual pages.
type roff struct {
	strings.Builder
	begun bool // the section has a text
}

func head(name, help string, release Release) *roff {
	b := &roff{}
	date := ""
	if !release.Date.IsZero() {
		date = release.Date.UTC().Format(time.DateOnly)
	}
	b.line(fmt.Sprintf(`.TH %s 1 "%s" "Muster %s" "Muster"`, escape(strings.ToUpper(name)), date, escape(release.Version)))
	b.line(".nh\n.ad l") // names of flags are not to be divided
	b.section("NAME")
	b.line(escape(name) + ` \- ` + escape(brief(help)))
	return b
}

func (b *roff) line(text string) { b.WriteString(text + "\n") }

func (b *roff) section(title string) {
	b.line(".SH " + title)
	b.begun = false
}

// textWidth is the length of a line of the source, in characters.
const textWidth = 78

// text writes lines of running text.
func (b *roff) text(text string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		word = escape(word)
		if len(line)+1+len(word) > textWidth {
			b.line(line)
			line = ""
		}
		switch {
		case line != "":
			line += " " + word
		case strings.HasPrefix(word, "."): // it would be a macro
			line = `\&` + word
		default:
			line = word
		}
	}
	b.line(line)
}

func (b *roff) paragraph(text string) {
	if b.begun {
		b.line(".PP")
	}
	b.begun = true
	if strings.HasPrefix(text, " ") {
		b.line(".nf\n.RS 4")
		for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
			b.line(`\&` + escape(strings.TrimSpace(line)))
		}
		b.line(".RE\n.fi")
		return
	}
	b.text(text)
}

func (b *roff) term(text string) { b.line(".TP\n\\fB" + escape(text) + "\\fR") }

func (b *roff) reference(page string) { b.line(".BR " + escape(page) + " (1)") }

func (b *roff) synopsis(c *command) {
	line := ""
	if b.begun {
		line = ".br\n"
	}
	b.begun = true
	line += ".B " + escape(c.name) + "\n"
	if len(c.children) > 0 {
		line += `\fICOMMAND\fR` + "\n"
	}
	before := ""
	for _, f := range own(c.flags) {
		switch {
		case f.required && f.instead != "" && f.instead == before:
			line += "| " + escape(f.shown) + "\n"
		case f.required:
			line += escape(f.shown) + "\n"
		}
		before = f.instead
	}
	line += "[\\fIOPTION\\fR]...\n"
	for _, a := range c.arguments {
		shown := `\fI` + escape(a.shown) + `\fR`
		if a.many {
			shown += "..."
		}
		if !a.required {
			shown = "[" + shown + "]"
		}
		line += shown + "\n"
	}
	b.WriteString(line)
}

func (b *roff) options(list []option) {
	for _, o := range list {
		b.term(o.shown)
		help := o.help
		if len(o.words) > 0 && !strings.Contains(help, o.words[0]) {
			help += " One of " + strings.Join(o.words, ", ") + "."
		}
		if len(o.envs) > 0 {
			help += " Variable: " + strings.Join(o.envs, ", ") + "."
		}
		if help == "" {
			help = "No description." // a term without a text would take the next one as its own
		}
		b.text(help)
	}
}

// escape writes a text so that roff shows it as it is: hyphens that can be copied, and characters beyond ASCII by their number.
func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '"':
			b.WriteString(`\(dq`)
		case r == '\'':
			b.WriteString(`\(aq`)
		case r == '`':
			b.WriteString(`\(ga`)
		case r == '^':
			b.WriteString(`\(ha`)
		case r == '~':
			b.WriteString(`\(ti`)
		case r == '|':
			b.WriteString(`|\:`) // a long list of values may break here
		case r < 0x80:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}
