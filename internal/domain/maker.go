package domain

// Maker identifies the access key that created a record, by a number derived from the key's id. It is 0 for keys of all roles except
// client, because they may use the records of others; records and events then omit it.
type Maker uint64

// MayTouch reports whether a caller may see, change and end what another Maker has created.
func (m Maker) MayTouch(made Maker) bool { return m == 0 || m == made }
