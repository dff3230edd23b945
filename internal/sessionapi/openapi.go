package sessionapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"
)

// The OpenAPI description of this door is generated from the types that it reads and writes, so it always matches them.
// Tools generate clients from it.

type object map[string]any

var description = sync.OnceValue(func() []byte {
	paths := object{}
	for _, n := range nodes {
		paths[Prefix+n.name] = object{"post": n.describe()}
		if n.event != "" {
			paths[Prefix+n.name+asyncSuffix] = object{"post": n.describeAsync()}
		}
	}
	for path, n := range map[string]*node{"placements/{id}": placementNode, "tickets/{id}": ticketNode} {
		paths[Prefix+path] = object{"get": n.describe("id")}
	}
	paths[Prefix+"calls/{id}/connected"] = object{"post": connectedNode.describe("id")}
	poll := (&node{name: "calls", out: reflect.TypeFor[state]()}).describe("id")
	paths[Prefix+"calls/{id}"] = object{"get": poll}
	events := object{
		"operationId": "events", "parameters": []object{clientParameter(), parameter("header", "Last-Event-ID", false)},
		"responses": object{"200": object{"description": "server-sent events", "content": object{"text/event-stream": object{}}}},
	}
	paths[Prefix+"events"] = object{"get": events}
	return mustEncode(object{
		"openapi": "3.1.0",
		"info":    object{"title": "Muster session nodes", "version": "1"},
		"paths":   paths,
		"components": object{"securitySchemes": object{
			"bearer": object{"type": "http", "scheme": "bearer", "bearerFormat": "KEYID.SECRET"},
			"basic":  object{"type": "http", "scheme": "basic"},
		}},
		"security": []object{{"bearer": []string{}}, {"basic": []string{}}},
	})
})

// describe returns the operation of a node; path are the parameters in its path.
func (n *node) describe(path ...string) object {
	content := func(t reflect.Type) object {
		return object{"application/json": object{"schema": schemaOf(t)}}
	}
	var parameters []object
	for _, name := range path {
		parameters = append(parameters, parameter("path", name, true))
	}
	responses := object{
		"200":     object{"description": "done", "content": content(n.out)},
		"default": object{"description": "refused", "content": content(reflect.TypeFor[failure]())},
	}
	if n.event != "" {
		async := parameter("query", "async", false)
		async["schema"] = object{"enum": []string{"1"}}
		parameters = append(parameters, async, clientParameter())
		responses["202"] = object{"description": "begun; completes with the event " + n.event, "content": content(reflect.TypeFor[accepted]())}
	}
	operation := object{"operationId": n.name, "responses": responses}
	if parameters != nil {
		operation["parameters"] = parameters
	}
	if n.in != nil && n.in != reflect.TypeFor[nothing]() {
		operation["requestBody"] = object{"content": content(n.in)}
	}
	return operation
}

// describeAsync returns the operation of a node's asynchronous form, which has its own name.
func (n *node) describeAsync() object {
	operation := n.describe()
	operation["operationId"] = n.name + asyncSuffix
	operation["parameters"] = []object{clientParameter()}
	delete(operation["responses"].(object), "200")
	return operation
}

func parameter(in, name string, required bool) object {
	return object{"in": in, "name": name, "required": required, "schema": object{"type": "string"}}
}

func clientParameter() object { return parameter("header", "X-Client-Id", false) }

// schemaOf returns the JSON schema of a type.
func schemaOf(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem())
	}
	switch t.Kind() {
	case reflect.Struct:
		properties := object{}
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "" {
				properties[name] = schemaOf(f.Type)
			}
		}
		return object{"type": "object", "properties": properties}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Interface:
		return object{}
	default:
		return object{"type": "integer"}
	}
}

// serveDescription serves the description. It needs no credentials, because the description contains no secrets.
func serveDescription(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description()) // fails if the client has gone
}
