// Package playerapi is the door of player flow, for players' clients, the studio's servers and operators. Calls are JSON over HTTP,
// POST /playerflow/v1/{realm}/{Service}.{Method}; events come over WebSockets, by long poll, or by webhook.
//
// This package composes the parts, authenticates each request and sends it to its realm. The door translates and authorises; it decides
// nothing.
package playerapi
