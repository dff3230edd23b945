// Package launch builds the command line of a server process from an entry of the runtime configuration.
package launch

import (
	"fmt"
	"strings"
)

// Words are the arguments of a process before its ports are known.
type Words []string

// Split splits Parameters at every single space, as the official agent does: without quoting, and with an empty argument between two spaces.
func Split(parameters string) Words {
	if parameters == "" {
		return nil
	}
	return strings.Split(parameters, " ")
}

// SplitQuoted splits Parameters as a shell does, without its expansions: single quotes keep everything, double quotes everything but
// backslashes before a quote or a backslash, and a backslash outside of quotes keeps the next character.
func SplitQuoted(parameters string) (Words, error) {
	var words Words
	var word strings.Builder
	inWord, quote := false, rune(0)
	runes := []rune(parameters)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote == '\'' && r != '\'', quote == '"' && r != '"' && r != '\\':
			word.WriteRune(r)
		case quote != 0 && r == quote:
			quote = 0
		case r == '\\':
			if i+1 == len(runes) {
				return nil, fmt.Errorf("parameters %q: end with a backslash; want a character after it", parameters)
			}
			i++
			if quote == '"' && runes[i] != '"' && runes[i] != '\\' {
				word.WriteRune('\\')
			}
			word.WriteRune(runes[i])
			inWord = true
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("parameters %q: a quote %c is not closed", parameters, quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// Values are the values of the placeholders for one process.
type Values struct {
	Index     int            // slot in the entry, from 0
	ProcessID string         // the id in the service
	LogDir    string         // directory of the process's output, into which it may write logs of its own
	Ports     map[string]int // by name; the first one's name is empty
}

// PortNames returns the names of the ports that a process needs, each once: the empty name of {port}, which every process gets, since it may read
// MUSTER_PORT instead; then others in their order, such as query for {port:query}.
func (w Words) PortNames() []string {
	names, seen := []string{""}, map[string]bool{"": true}
	for _, word := range w {
		expand(word, func(name string) (string, bool) {
			port, ok := portName(name)
			if ok && !seen[port] {
				seen[port] = true
				names = append(names, port)
			}
			return "", ok
		})
	}
	return names
}

// Fill replaces {port}, {port:NAME}, {index}, {process_id} and {log_dir} by their values. Other braces stay as they are, because they are legal
// in Parameters, for example in JSON.
func (w Words) Fill(v Values) []string {
	filled := make([]string, len(w))
	for i, word := range w {
		filled[i] = expand(word, v.lookup)
	}
	return filled
}

func (v Values) lookup(name string) (string, bool) {
	switch name {
	case "index":
		return fmt.Sprint(v.Index), true
	case "process_id":
		return v.ProcessID, true
	case "log_dir":
		return v.LogDir, true
	}
	if port, ok := portName(name); ok {
		return fmt.Sprint(v.Ports[port]), true
	}
	return "", false
}

// Environment returns the environment variables with the ports: MUSTER_PORT, and for example MUSTER_PORT_QUERY for a port named query.
func (v Values) Environment() []string {
	var list []string
	for name, port := range v.Ports {
		if strings.Contains(name, "/") {
			continue // not the game's
		}
		key := "MUSTER_PORT"
		if name != "" {
			key += "_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		}
		list = append(list, fmt.Sprintf("%s=%d", key, port))
	}
	return list
}

// portName returns NAME for port:NAME, and the empty name for port.
func portName(name string) (string, bool) {
	if name == "port" {
		return "", true
	}
	of, ok := strings.CutPrefix(name, "port:")
	if !ok || of == "" || len(of) > 32 || strings.Trim(of, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return "", false
	}
	return of, true
}

// expand replaces the placeholders for which lookup has a value. It does not expand placeholders within values.
func expand(word string, lookup func(name string) (string, bool)) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(word, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if closed {
			if value, ok := lookup(name); ok {
				out.WriteString(value)
				word = after
				continue
			}
		}
		out.WriteByte('{') // {"a":{port}}: the next brace may begin a placeholder
		word = rest
	}
}
