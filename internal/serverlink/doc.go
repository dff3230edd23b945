// Package serverlink is the door of game servers: the WebSocket protocol that the official server SDKs 5.x speak.
//
// It translates and authorises; the core decides. What must hold so that real game servers survive is written down in
// the server SDK protocol notes; comments that say "SDK protocol" and a section refer to them.
package serverlink
