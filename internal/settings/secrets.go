package settings

import (
	"regexp"
	"strings"

	"github.com/musterhq/muster/internal/webhook"
)

// Shown is the value of a setting as it may be printed. The receivers of notifications are reduced to their hosts, since of many the
// path is the secret; other URLs lose their password and query.
func Shown(name, value string) string {
	switch name {
	case "notify-events":
		return shownReceiver(value)
	case "notify-topics":
		words := strings.Fields(value)
		for i, word := range words {
			if arn, to, ok := strings.Cut(word, "="); ok {
				words[i] = arn + "=" + shownReceiver(to)
			} else {
				words[i] = shownReceiver(word)
			}
		}
		return strings.Join(words, " ")
	}
	value = password.ReplaceAllString(value, "://…@")
	if strings.Contains(value, "://") {
		value = query.ReplaceAllString(value, "?…")
	}
	return value
}

var (
	password = regexp.MustCompile(`://\S*@`)
	query    = regexp.MustCompile(`\?\S*`)
)

// shownReceiver keeps of what is no URL nothing at all: it may be one with a slip.
func shownReceiver(text string) string {
	switch {
	case text == "":
		return ""
	case strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://"):
		return webhook.PlainURL(text)
	}
	return "…"
}
