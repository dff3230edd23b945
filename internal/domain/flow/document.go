package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A document is a JSON object of sections, and a section is an object of options: {"PartyServiceConfig": {"maxMembers": 4}}. In addition,
// "queues" is a list of queues, each with its name, maxParty, clientVersions and options of its own. Options that the document does not
// name keep their values.

// Fault is a mistake in a document or a configuration.
type Fault struct{ Path, Message string }

func (f Fault) Error() string {
	if f.Path == "" {
		return f.Message
	}
	return f.Path + ": " + f.Message
}

// Faults lists all mistakes in a document or a configuration.
type Faults []Fault

func (all Faults) Error() string {
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

func (all *Faults) add(path, format string, args ...any) {
	*all = append(*all, Fault{path, fmt.Sprintf(format, args...)})
}

// With returns the configuration with the values of a document applied, and all mistakes in the document. Options with a mistake keep
// their values.
func (c *Config) With(document string) (Config, Faults) {
	x := *c
	var wrong Faults
	for _, section := range members("", []byte(document), &wrong) {
		switch {
		case section.name == sectionOfQueues:
			x.Queues = x.readQueues(section.value, &wrong)
		case !slices.Contains(sections(), section.name):
			wrong.add(section.name, "there is no such section; want %s or %s", strings.Join(sections(), ", "), sectionOfQueues)
		default:
			for _, m := range members(section.name, section.value, &wrong) {
				o, ok := option(section.name, m.name)
				if !ok {
					wrong.add(section.name+"."+m.name, "there is no such option")
					continue
				}
				x.read(o, o.Path(), m.value, &wrong)
			}
		}
	}
	if x.Sessions.DeadAfter < 2*x.Sessions.PingInterval {
		wrong = append(wrong, x.tooShort())
		x.Sessions.PingInterval, x.Sessions.DeadAfter = c.Sessions.PingInterval, c.Sessions.DeadAfter
	}
	return x, wrong
}

func (c *Config) tooShort() Fault {
	return Fault{sectionSession + ".deadAfter", fmt.Sprintf("%q, want at least twice pingInterval, which is %s",
		spellPeriod(c.Sessions.DeadAfter), spellPeriod(c.Sessions.PingInterval))}
}

// read sets one option from its JSON text, or reports what is wrong with it and keeps the old value.
func (c *Config) read(o *Option, path string, text json.RawMessage, wrong *Faults) bool {
	before := *c
	if err := o.form.read(c, text); err != nil {
		want := ""
		if !strings.HasSuffix(err.Error(), o.form.want) {
			want = " (" + o.form.want + ")"
		}
		wrong.add(path, "%.100s, %v%s", text, err, want)
		return false
	}
	if o.form.wrong(c) {
		*c = before
		wrong.add(path, "%.100s, want %s", text, o.form.want)
		return false
	}
	return true
}

// partyOfQueueMax is the largest number of players on a ticket.
const partyOfQueueMax = 10

// readQueues reads the list of queues, which replaces the previous list as a whole.
func (c *Config) readQueues(text json.RawMessage, wrong *Faults) (all []QueueConfig) {
	var list []json.RawMessage
	if isNull(text) || json.Unmarshal(text, &list) != nil {
		wrong.add(sectionOfQueues, `%.100s, want a list such as [{"name": "ranked", "reconnect": "REQUIRED"}]`, text)
		return c.Queues
	}
	for i, element := range list {
		path := fmt.Sprintf("%s[%d]", sectionOfQueues, i)
		var q QueueConfig
		for _, m := range members(path, element, wrong) {
			at := path + "." + m.name
			switch m.name {
			case "name":
				if json.Unmarshal(m.value, &q.Name) != nil {
					wrong.add(at, "%.100s, want the name of a matchmaking configuration", m.value)
				}
			case "maxParty":
				if isNull(m.value) || json.Unmarshal(m.value, &q.PartyMax) != nil || q.PartyMax < 1 || q.PartyMax > partyOfQueueMax {
					q.PartyMax = 0
					wrong.add(at, "%.100s, want 1 to %d", m.value, partyOfQueueMax)
				}
			case "clientVersions":
				form := texts(func(*Config) *[]string { return &q.ClientVersions })
				if err := form.read(c, m.value); err != nil || form.wrong(c) {
					q.ClientVersions = nil
					wrong.add(at, "%.100s, want %s", m.value, form.want)
				}
			default:
				o, ok := queueOption(m.name)
				if !ok {
					wrong.add(at, "there is no such option of a queue; want name, maxParty, clientVersions or one of %s", strings.Join(queueOptions(), ", "))
					continue
				}
				if probe := *c; probe.read(o, at, m.value, wrong) {
					q.Own = append(q.Own, Setting{m.name, string(m.value)})
				}
			}
		}
		switch {
		case q.Name == "":
			wrong.add(path+".name", "empty")
		case slices.ContainsFunc(all, func(x QueueConfig) bool { return x.Name == q.Name }):
			wrong.add(path+".name", "%q is in the list twice", q.Name)
		default:
			all = append(all, q)
		}
	}
	return all
}

// Validate reports every invalid value, under the option's name in docs/spec/player-api.md#options.
func (c *Config) Validate() error {
	var wrong Faults
	for i := range options {
		if o := &options[i]; o.form.wrong(c) {
			wrong.add(o.Path(), "%s, want %s", spell(o.Value(c)), o.form.want)
		}
	}
	if c.Sessions.DeadAfter < 2*c.Sessions.PingInterval {
		wrong = append(wrong, c.tooShort())
	}
	for i, q := range c.Queues {
		if q.Name == "" {
			wrong.add(fmt.Sprintf("%s[%d].name", sectionOfQueues, i), "empty")
		}
		if q.PartyMax < 0 || q.PartyMax > partyOfQueueMax {
			wrong.add(fmt.Sprintf("%s[%d].maxParty", sectionOfQueues, i), "%d, want 1 to %d", q.PartyMax, partyOfQueueMax)
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// Document writes the whole configuration as a document, in the order of docs/spec/player-api.md#options.
func (c *Config) Document() string {
	var b bytes.Buffer
	b.WriteByte('{')
	section := ""
	for i := range options {
		o := &options[i]
		switch {
		case section == "":
			fmt.Fprintf(&b, "%q:{", o.Section)
		case section != o.Section:
			fmt.Fprintf(&b, "},%q:{", o.Section)
		default:
			b.WriteByte(',')
		}
		section = o.Section
		fmt.Fprintf(&b, "%q:%s", o.Name, spell(o.Value(c)))
	}
	fmt.Fprintf(&b, "},%q:[", sectionOfQueues)
	for i, q := range c.Queues {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(q.Document())
	}
	b.WriteString("]}")
	return b.String()
}

// Document writes the queue in the form used in documents.
func (q *QueueConfig) Document() string {
	b := []byte(`{"name":` + spell(q.Name))
	if q.PartyMax > 0 {
		b = fmt.Appendf(b, `,"maxParty":%d`, q.PartyMax)
	}
	if len(q.ClientVersions) > 0 {
		b = fmt.Appendf(b, `,"clientVersions":%s`, spell(q.ClientVersions))
	}
	for _, x := range q.Own {
		b = fmt.Appendf(b, ",%q:%s", x.Name, x.Value)
	}
	return string(append(b, '}'))
}

// MergeDocuments applies a change to a document: values in the change override those of the document, and null removes a value. The result
// drops options that only an earlier release knew.
func MergeDocuments(document, change string) (string, Faults) {
	var wrong, old Faults // mistakes in the old document are not the change's
	merged := map[string]map[string]json.RawMessage{}
	queues := json.RawMessage(nil)
	put := func(from string, wrong *Faults) {
		for _, section := range members("", []byte(from), wrong) {
			switch {
			case section.name == sectionOfQueues:
				if queues = section.value; isNull(queues) {
					queues = nil
				}
			case !slices.Contains(sections(), section.name):
				wrong.add(section.name, "there is no such section; want %s or %s", strings.Join(sections(), ", "), sectionOfQueues)
			case isNull(section.value):
				delete(merged, section.name)
			default:
				into := merged[section.name]
				if into == nil {
					into = map[string]json.RawMessage{}
				}
				for _, m := range members(section.name, section.value, wrong) {
					if _, ok := option(section.name, m.name); !ok {
						wrong.add(section.name+"."+m.name, "there is no such option")
						continue
					}
					if into[m.name] = m.value; isNull(m.value) {
						delete(into, m.name)
					}
				}
				if merged[section.name] = into; len(into) == 0 {
					delete(merged, section.name)
				}
			}
		}
	}
	if document != "" {
		put(document, &old)
	}
	put(change, &wrong)
	whole := map[string]any{}
	for name, section := range merged {
		whole[name] = section
	}
	if queues != nil {
		whole[sectionOfQueues] = queues
	}
	return spell(whole), wrong // in the order of their names
}

// Says reports whether a document sets an option.
func Says(document string, o *Option) bool {
	var ignored Faults
	for _, section := range members("", []byte(document), &ignored) {
		if section.name != o.Section {
			continue
		}
		for _, m := range members(section.name, section.value, &ignored) {
			if m.name == o.Name {
				return true
			}
		}
	}
	return false
}

type member struct {
	name  string
	value json.RawMessage
}

// members reads an object. Text that is not an object is a fault, and so is a duplicate name.
func members(path string, text []byte, wrong *Faults) (all []member) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		wrong.add(path, "want a JSON object")
		return nil
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			wrong.add(path, "%v", err)
			return all
		}
		name := key.(string) // a decoder returns only strings as keys
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			wrong.add(path, "%q: %v", name, err)
			return all
		}
		if slices.ContainsFunc(all, func(m member) bool { return m.name == name }) {
			wrong.add(strings.TrimPrefix(path+"."+name, "."), "is given twice")
			continue
		}
		all = append(all, member{name, value})
	}
	if _, err := decoder.Token(); err != nil {
		wrong.add(path, "%v", err)
	} else if _, err := decoder.Token(); err != io.EOF {
		wrong.add(path, "want nothing after the object")
	}
	return all
}

// sections returns the names of all sections, in the order of docs/spec/player-api.md#options.
func sections() (names []string) {
	for i := range options {
		if name := options[i].Section; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func queueOptions() (names []string) {
	for i := range options {
		if options[i].Queue {
			names = append(names, options[i].Name)
		}
	}
	return names
}

func spell(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("a setting cannot be spelled: %v", err)) // settings are strings, numbers, booleans, and JSON that was read
	}
	return string(text)
}
