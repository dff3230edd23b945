// Package playerapi is the door of player flow, for players' clients, the studio's servers and operators. Calls are JSON over HTTP,
// POST /playerflow/v1/{realm}/{Service}.{Method}; events come over WebSockets, by long poll, or by webhook.
//
// This package puts the parts together, and sends each request to its realm, once it knows who makes it. The door translates
// and authorises; it decides nothing.
package playerapi
