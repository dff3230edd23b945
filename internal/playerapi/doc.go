// Package playerapi is the door of players' clients, of the studio's servers and of operators to player flow: who is logged
// in, in which party, in which queue, in which game.
//
// Calls are JSON over HTTP, POST /playerflow/v1/{realm}/{Service}.{Method}. They are declared once, as Go types: what is
// checked of a request and what the OpenAPI document says come from the same declaration. Players are told what happens
// over an event stream, a WebSocket, or by long poll; both read what the core has written down for each player, so a
// client that was away gets what it missed.
//
// The door translates and authorises. It holds no queue of events for anybody: what is on its way to a slow client is
// bounded, and a client that falls behind comes back and asks for the rest.
package playerapi
