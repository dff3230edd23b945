package notice

import (
	"iter"
	"maps"

	"github.com/musterhq/muster/internal/domain/chunk"
	"github.com/musterhq/muster/internal/domain/sorted"
)

// Records has all waiting notices and the subscriptions. Snapshots contain no indexes; they are rebuilt from the records.
type Records struct {
	Notices       chunk.Table[Notice]
	Subscriptions chunk.Table[Subscription]

	topics     map[string]sorted.Map[uint64, Ref] // by number
	subscribed map[[2]string]SubscriptionRef      // by topic and URL
}

// NewRecords returns empty Records.
func NewRecords() *Records {
	return &Records{
		Notices: chunk.New[Notice](), Subscriptions: chunk.New[Subscription](),
		topics: map[string]sorted.Map[uint64, Ref]{}, subscribed: map[[2]string]SubscriptionRef{},
	}
}

// Add stores a notice.
func (s *Records) Add(n Notice) Ref {
	r, rec := s.Notices.Add()
	*rec = n
	t := s.topics[n.Topic]
	if t == nil {
		t = sorted.NewMap[uint64, Ref]()
		s.topics[n.Topic] = t
	}
	t.Set(n.No, r)
	return r
}

// Find finds a notice of a topic.
func (s *Records) Find(topic string, no uint64) (Ref, bool) {
	if t := s.topics[topic]; t != nil {
		return t.Get(no)
	}
	return 0, false
}

func (s *Records) Remove(r Ref) {
	n := s.Notices.Get(r)
	t := s.topics[n.Topic]
	t.Delete(n.No)
	if t.Len() == 0 {
		delete(s.topics, n.Topic)
	}
	s.Notices.Remove(r)
}

// Topics yields the topics that have notices, in no particular order.
func (s *Records) Topics() iter.Seq[string] { return maps.Keys(s.topics) }

// Count returns the number of notices of a topic.
func (s *Records) Count(topic string) int {
	if t := s.topics[topic]; t != nil {
		return t.Len()
	}
	return 0
}

// First returns the number of the oldest notice of a topic.
func (s *Records) First(topic string) (no uint64, ok bool) {
	if t := s.topics[topic]; t != nil {
		no, _, ok = t.Min()
	}
	return no, ok
}

// From yields the notices of a topic in order, beginning after a number.
func (s *Records) From(topic string, after uint64, yield func(*Notice) bool) {
	if t := s.topics[topic]; t != nil {
		t.Ascend(after+1, func(_ uint64, r Ref) bool { return yield(s.Notices.Get(r)) })
	}
}

// Subscribe stores or replaces a subscription.
func (s *Records) Subscribe(x Subscription) {
	key := [2]string{x.Topic, x.URL}
	r, ok := s.subscribed[key]
	if !ok {
		r, _ = s.Subscriptions.Add()
		s.subscribed[key] = r
	}
	*s.Subscriptions.Mut(r) = x
}

// Subscription finds a subscription.
func (s *Records) Subscription(topic, url string) (SubscriptionRef, bool) {
	r, ok := s.subscribed[[2]string{topic, url}]
	return r, ok
}
