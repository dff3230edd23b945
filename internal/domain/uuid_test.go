package domain

import (
	"strings"
	"testing"
)

func TestUUIDs(t *testing.T) {
	const text = "0123abcd-ef45-4678-9abc-def012345678"
	u, ok := ParseUUID(text)
	if !ok || u.String() != text || u.IsZero() {
		t.Errorf("%s was read as %s (%t)", text, u, ok)
	}
	if !(UUID{}).IsZero() || (UUID{}).String() != "00000000-0000-0000-0000-000000000000" {
		t.Error("the zero UUID is not zero")
	}
	for _, wrong := range []string{
		"", text[1:], text + "0", strings.ToUpper(text), "0123Abcd" + text[8:], "{" + text + "}", "urn:uuid:" + text, strings.ReplaceAll(text, "-", ""),
		strings.Replace(text, "-", "0", 1), "0123abc-d" + text[9:], "0123abcg" + text[8:], strings.Repeat("0", 36), strings.Repeat("-", 36), text[:34] + "ä",
	} {
		if u, ok := ParseUUID(wrong); ok {
			t.Errorf("%q was read as %s", wrong, u)
		}
	}
}
