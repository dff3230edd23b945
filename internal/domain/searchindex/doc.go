// Package searchindex finds the game sessions of a fleet that a filter selects, without reading their records.
//
// The searchable attributes are stored in columns: blocks of up to 512 game sessions with an array for each attribute. A comparison runs over
// such an array and sets a bit for each row; AND, OR and NOT are operations on words of bits. So the cost of a search hardly depends on the
// filter: a scan of a fleet of 100,000 game sessions takes 0.1 to 0.4 ms, in steps of about 30 µs between which writers can run. A tree per
// attribute would be faster for filters on that attribute alone, and far slower for all others. In addition, each player who takes a seat would
// change three trees instead of one number in an array.
//
// Dictionaries number texts, so that a comparison of texts compares numbers; labels give the order of the texts.
//
// # Why a scan in steps is right
//
// Blocks hold neighbours on a ring: each game session has a mark, a hash of its id, which never changes. A scan stores the remaining part of
// the ring and looks up the block again at each step, so blocks may be split and joined between two steps. The scanned parts are disjoint and
// cover the ring. This guarantees three things: a scan visits each game session that exists throughout exactly once; a search without an order
// may begin anywhere and stop when its page is full; and the next page continues after the last result, even after a restart. A game session
// that is added or removed during the scan may be found or not: both are correct at some moment.
//
// Results in the order of texts are compared by labels. A text keeps its label while it is in use, and a new text gets one between its
// neighbours'. If there is no gap between them, all labels are redistributed, and a scan that has compared old ones starts again. After four
// restarts it finishes in one step, which blocks the writer meanwhile, so that it ends even under constant change.
//
// # Bounds
//
// A row takes about 40 bytes. A block is at least a quarter full, unless its neighbours are too full to join it. A key used by more than 32
// rows of a block takes 2 KiB in that block, at most 64 bytes per value; with fewer rows, 8 bytes per value. A step makes 128 comparisons with
// blocks, about 30 µs. Taking a seat changes two numbers and a bit. Adding or removing a game session costs a search among the blocks, and
// occasionally the move of half a block.
//
// # What would break it
//
// The index does not read records: the state that owns it must call Add, SetPlayers, Change and Remove for every change of a field of Session,
// with the old values where they are parameters. A dictionary use that is never released keeps its text forever. After a double release,
// another text gets the number, and searches find the wrong game sessions. TestFindsWhatLookingAtEachFinds and TestPagesUnderChange compare the
// results with those of reading each game session.
package searchindex
