// Package model is the service API as data: each operation's shapes and errors, each shape's constraints.
package model

import (
	_ "embed"
	"encoding/json"
	"sync"
)

//go:embed gamelift-model.json
var file []byte

// Model is the whole API, version 2015-10-01.
type Model struct {
	Operations map[string]Operation `json:"operations"`
	Shapes     map[string]Shape     `json:"shapes"`
}

// Operation names its shapes and the errors that it may return.
type Operation struct {
	Input  string   `json:"input"`
	Output string   `json:"output"` // empty where a success has no body
	Errors []string `json:"errors"`
}

// Shape is a type with its constraints. Min and Max are of the length for strings, blobs, lists and maps, of the value
// for numbers.
type Shape struct {
	Type      string            `json:"type"`
	Required  []string          `json:"required"`
	Members   map[string]string `json:"members"` // of a structure: name to shape
	Member    string            `json:"member"`  // of a list
	Key       string            `json:"key"`     // of a map
	Value     string            `json:"value"`
	Min       *float64          `json:"min"`
	Max       *float64          `json:"max"`
	Pattern   string            `json:"pattern"`
	Enum      []string          `json:"enum"`
	Sensitive bool              `json:"sensitive"` // values must reach neither logs nor messages
	Exception bool              `json:"exception"`
	Fault     bool              `json:"fault"` // an exception that is the service's fault
}

// Load reads the embedded model once and returns the same model to all callers. They must not change it.
var Load = sync.OnceValue(func() *Model {
	m := new(Model)
	if err := json.Unmarshal(file, m); err != nil {
		panic("gamelift model: " + err.Error()) // embedded at build time: a bug of ours
	}
	return m
})
