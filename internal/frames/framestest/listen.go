package framestest

import (
	"errors"
	"time"

	"github.com/gorilla/websocket"
)

// Listen passes on each message of a WebSocket until the connection ends, and returns the code that it was closed with: 1006 for an
// end without a close frame.
func Listen(c *websocket.Conn, hear func(message []byte)) (code int) {
	defer c.Close()
	c.SetCloseHandler(func(code int, _ string) error {
		_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Time{}) // fails when the test closed first
		return nil
	})
	for {
		_, message, err := c.ReadMessage()
		if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
			return closed.Code
		}
		if err != nil {
			return websocket.CloseAbnormalClosure
		}
		hear(message)
	}
}
