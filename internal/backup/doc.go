// Package backup has the file of a backup: the state after one journal entry, the records that had left memory for the archive by then, and the secret of the
// installation. It is written while the service runs, and a new data directory is made from it (datadir.Restore). docs/formats/backup.md has the layout.
//
// A file is a chain of blocks. The checksum of each continues that of the blocks before it, so a block that was changed, lost, repeated or moved, or that comes from
// another file, is noticed where it stands. Only a file that ends with its end block is whole. It is no defence against a person who can write the file.
package backup
