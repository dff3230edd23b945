package main

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// rooms are the parts of the core that own events, with the packages that have their code.
var rooms = map[string]string{
	"kernel":      kernel,
	"hosting":     "internal/domain/hosting",
	"gameservers": "internal/domain/gameservers",
	"notice":      "internal/domain/notice",
	"matchmaking": "internal/domain/matchmaking",
	"playerflow":  "internal/domain/playerflow",
	"access":      "internal/domain/access",
	"answers":     "internal/domain/answers",
	"membership":  "internal/domain/membership",
	"hosts":       "internal/domain/hosts",
	"capacity":    "internal/domain/capacity",
	"audit":       "internal/domain/audit",
	"grants":      "internal/domain/grants",
	"people":      "internal/domain/people",
}

// kernel is the package that has the types Event and Kind.
const kernel = "internal/domain/kernel"

func kernelName(name string) string { return path.Base(kernel) + "." + name }

// generate returns the generated files by their paths in the repository.
func generate(protoDir string) (map[string][]byte, error) {
	c := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{protoDir}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := c.Compile(context.Background(), "journal.proto")
	if err != nil {
		return nil, err
	}
	byRoom := map[string]*writer{}
	parts := compiled[0].Messages().ByName("SnapshotPart").Oneofs().ByName("part").Fields()
	done := map[protoreflect.FullName]bool{}
	events := compiled[0].Messages().ByName("Event").Oneofs().ByName("event").Fields()
	for i := range events.Len() {
		event := events.Get(i)
		room, _ := options(event)["room"].(string)
		dir, ok := rooms[room]
		if !ok {
			return nil, fmt.Errorf("%s: the option room is %q, want one of the rooms that journalgen knows", event.FullName(), room)
		}
		if byRoom[room] == nil {
			byRoom[room] = &writer{room: room, dir: dir, done: done}
		}
		byRoom[room].event(event)
	}
	byRoom["kernel"].highest = max(highestLevel(events), highestLevel(parts))
	files := map[string][]byte{}
	for room, w := range byRoom {
		if files[w.dir+"/events_gen.go"], err = w.file(); err != nil {
			return nil, fmt.Errorf("room %s: %w", room, err)
		}
	}
	return files, nil
}

// levelOf is the level of an event or a part of a snapshot.
func levelOf(f protoreflect.FieldDescriptor) uint32 {
	if level, ok := options(f)["level"].(uint32); ok {
		return level
	}
	return 1
}

func highestLevel(fields protoreflect.FieldDescriptors) (highest uint32) {
	for i := range fields.Len() {
		highest = max(highest, levelOf(fields.Get(i)))
	}
	return highest
}

// options returns the values of our own options of a message or field.
func options(d protoreflect.Descriptor) map[string]any {
	all := map[string]any{}
	d.Options().ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.IsExtension() {
			all[string(f.Name())] = v.Interface()
		}
		return true
	})
	return all
}

// comment is what stands before a message or field in the schema, and behind it.
func comment(d protoreflect.Descriptor) (before, behind string) {
	at := d.ParentFile().SourceLocations().ByDescriptor(d)
	return strings.TrimSpace(at.LeadingComments), strings.TrimSpace(at.TrailingComments)
}

// initialisms are the words of names that Go writes in capitals.
var initialisms = map[string]string{"id": "ID", "ids": "IDs", "sdk": "SDK", "url": "URL"}

// goName is the name of a field in Go: without its unit, if the type says it.
func goName(f protoreflect.FieldDescriptor) string {
	if name, ok := options(f)["go_name"].(string); ok {
		return name
	}
	name := string(f.Name())
	if f.Kind() == protoreflect.Int64Kind {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_ms"), "_contact")
	}
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if all, ok := initialisms[word]; ok {
			b.WriteString(all)
		} else {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// goType is the type of a field in Go, of each element if the field is repeated.
func goType(f protoreflect.FieldDescriptor) string {
	if name, ok := options(f)["go"].(string); ok {
		return name
	}
	switch f.Kind() {
	case protoreflect.Int64Kind:
		switch name := string(f.Name()); {
		case strings.HasSuffix(name, "_contact_ms"):
			return "domain.ContactTime"
		case strings.HasSuffix(name, "_ms"):
			return "domain.Time"
		}
	case protoreflect.Fixed64Kind:
		return "uint64"
	case protoreflect.BytesKind:
		return "domain.UUID"
	case protoreflect.MessageKind:
		of := options(f.Message())
		for _, option := range []string{"record", "scalar"} {
			if name, ok := of[option].(string); ok {
				return name
			}
		}
		return string(f.Message().Name())
	}
	return f.Kind().String()
}

// codec is the statement that writes and reads a field, which is the variable v of type goType.
func codec(f protoreflect.FieldDescriptor, v string) (string, error) {
	is := options(f)
	shared, _ := is["shared"].(bool)
	omit, _ := is["omit_empty"].(bool)
	n, kind, goes := f.Number(), f.Kind(), goType(f)
	method := func(name string) (string, error) { return fmt.Sprintf("c.%s(%d, %s)", name, n, v), nil }
	function := func(name, more string) (string, error) {
		return fmt.Sprintf("wire.%s(c, %d, %s%s)", name, n, v, more), nil
	}
	switch {
	case kind == protoreflect.MessageKind:
		fields, err := fieldsOf(f.Message(), strings.TrimPrefix(goes, "*"))
		switch value := strings.TrimPrefix(v, "&"); {
		case err != nil:
			return "", err
		case f.IsList():
			return function("Many", ", "+fields)
		case goes[0] == '*':
			return function("Optional", ", "+fields)
		case omit:
			return function("Sub", fmt.Sprintf(", %s != %s{}, %s", value, goes, fields))
		}
		return function("Sub", ", true, "+fields)
	case f.IsList() && goes == "string":
		return method("Strings")
	case f.IsList():
	case kind == protoreflect.BoolKind && goes == "bool":
		return method("Bool")
	case kind == protoreflect.StringKind && shared:
		return method("Shared")
	case (kind == protoreflect.StringKind || kind == protoreflect.BytesKind) && goes == "string":
		return method("String")
	case kind == protoreflect.StringKind:
		return function("Text", "")
	case kind == protoreflect.BytesKind && goes == "domain.UUID":
		return method("UUID")
	case kind == protoreflect.BytesKind:
		return function("ID", "")
	case kind == protoreflect.Fixed64Kind && goes == "uint64":
		return method("Fixed64")
	case kind == protoreflect.Fixed64Kind:
		v = "(*uint64)(" + v + ")"
		return method("Fixed64")
	case kind == protoreflect.Int32Kind || kind == protoreflect.Int64Kind || kind == protoreflect.Uint32Kind || kind == protoreflect.Uint64Kind:
		return function("Int", "")
	}
	return "", fmt.Errorf("%s: no wire code for %s %s as %s", f.FullName(), f.Cardinality(), kind, goes)
}

// fieldsOf is the function that writes and reads the fields of a message, which is of type goes.
func fieldsOf(m protoreflect.MessageDescriptor, goes string) (string, error) {
	if _, scalar := options(m)["scalar"]; !scalar {
		return "(*" + goes + ").Fields", nil
	}
	statement, err := codec(m.Fields().Get(0), "x")
	return fmt.Sprintf("func(x *%s, c *wire.Codec) { %s }", goes, statement), err
}

var (
	qualifier = regexp.MustCompile(`\b([a-z]{2,})\.[A-Z]`)
	comments  = regexp.MustCompile(`//.*`)
)

// importsOf are the packages that code uses, by their import paths.
func importsOf(code []byte) map[string]bool {
	const domain = "github.com/musterhq/muster/internal/domain"
	all := map[string]bool{}
	for _, m := range qualifier.FindAllSubmatch(comments.ReplaceAll(code, nil), -1) {
		switch name := string(m[1]); name {
		case "domain":
			all[domain] = true
		default:
			all[domain+"/"+name] = true
		}
	}
	return all
}
