// Package backup reads and writes backup files. A backup has the state after one journal entry, the records that had left memory for the archive by
// then, and the installation's secret. It is written while the service runs. datadir.Restore creates a new data directory from it.
// docs/formats/backup.md has the layout.
//
// A file is a chain of blocks. The checksum of each block continues that of the blocks before it, so a block that was changed, lost,
// repeated, moved or taken from another file is detected where it is. Only a file that ends with its end block is whole. The checksums do
// not protect against deliberate changes.
package backup
