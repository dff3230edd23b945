package domain

// Maker is the access key that something was made with, as a number that its id gives. It is 0 for keys that may touch
// what others have made, which are all but those of the role client: then records and events do not hold it.
type Maker uint64

// MayTouch reports whether a caller may see, change and end what was made by another.
func (m Maker) MayTouch(made Maker) bool { return m == 0 || m == made }
