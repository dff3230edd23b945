package settings

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain/notice"
)

// topicARN is the API model's pattern of a notification target, restricted to topics.
var topicARN = regexp.MustCompile(`^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]*:[A-Za-z0-9_-]+(\.fifo)?$`)

// Topics returns the webhooks of topics by ARN. Check has validated them.
func (s Settings) Topics() map[string]string {
	topics, _ := parseTopics(s.NotifyTopics)
	return topics
}

func parseTopics(text string) (map[string]string, error) {
	topics := map[string]string{}
	var errs []error
	for each := range strings.FieldsSeq(text) {
		arn, to, ok := strings.Cut(each, "=")
		switch {
		case !ok || !topicARN.MatchString(arn):
			errs = append(errs, fmt.Errorf("notify-topics %q: want ARN=URL, such as arn:aws:sns:us-east-1:000000000000:placements=https://example.com/hook", Shown("notify-topics", each)))
		case topics[arn] != "":
			errs = append(errs, fmt.Errorf("notify-topics: %s is named twice; want one URL for each topic", arn))
		default:
			topics[arn] = to
			errs = append(errs, checkWebhook("notify-topics", to))
		}
	}
	return topics, errors.Join(errs...)
}

func checkNotify(events, topics string) error {
	_, err := parseTopics(topics)
	if events != "" {
		err = errors.Join(err, checkWebhook("notify-events", events))
	}
	return err
}

func checkWebhook(name, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return fmt.Errorf("%s %q: want a URL such as https://example.com/hook", name, shownReceiver(text))
	}
	return nil
}

// notify returns the part of the settings that the core needs to write notices; nil without receivers.
func (s Settings) notify() *notice.Notify {
	topics := slices.Sorted(maps.Keys(s.Topics()))
	if s.NotifyEvents == "" && len(topics) == 0 {
		return nil
	}
	return &notice.Notify{Bus: s.NotifyEvents != "", Topics: topics, Max: s.LimitNotices, Age: s.NotifyMaxAge}
}
