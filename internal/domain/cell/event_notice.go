package cell

import (
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/wire"
)

// NoticeWritten says that a receiver is to be told of something that happened in the same transaction.
type NoticeWritten struct{ Notice notice.Notice }

// NoticesDelivered says that the receiver has these notices.
type NoticesDelivered struct {
	Topic string
	Nos   []NoticeNo
}

// NoticesDropped says that these notices were given up: too old, or too many.
type NoticesDropped struct {
	Topic string
	Nos   []NoticeNo
}

// NoticeNo is the number of a notice.
type NoticeNo uint64

// SubscriptionConfirmed says that the receiver at a URL wants to hear of a topic.
type SubscriptionConfirmed struct{ Topic, URL string }

func (*NoticeWritten) kind() Kind         { return KindNoticeWritten }
func (*NoticesDelivered) kind() Kind      { return KindNoticesDelivered }
func (*NoticesDropped) kind() Kind        { return KindNoticesDropped }
func (*SubscriptionConfirmed) kind() Kind { return KindSubscriptionConfirmed }

// Fields of the event.
func (e *NoticeWritten) Fields(c *wire.Codec) {
	wire.Sub(c, 1, &e.Notice, true, (*notice.Notice).Fields)
}

// Fields of the event.
func (e *NoticesDelivered) Fields(c *wire.Codec) {
	c.String(1, &e.Topic)
	wire.Many(c, 2, &e.Nos, (*NoticeNo).fields)
}

// Fields of the event.
func (e *NoticesDropped) Fields(c *wire.Codec) {
	c.String(1, &e.Topic)
	wire.Many(c, 2, &e.Nos, (*NoticeNo).fields)
}

func (n *NoticeNo) fields(c *wire.Codec) { wire.Int(c, 1, n) }

// Fields of the event.
func (e *SubscriptionConfirmed) Fields(c *wire.Codec) {
	c.String(1, &e.Topic)
	c.String(2, &e.URL)
}
