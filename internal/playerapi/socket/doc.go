// Package socket has what the WebSockets of the player API share: frames that the service writes, close codes, and time limits.
package socket
