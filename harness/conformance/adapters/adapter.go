// A consumer in Go: maps RING_FILE, drains it once, and prints the events.
// usage: adapter RING_FILE PAGES SAMPLE_TYPE
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"
)

const (
	page   = 4096
	raw    = 1 << 10 // PERF_SAMPLE_RAW
	sample = 9       // PERF_RECORD_SAMPLE
	lost   = 2       // PERF_RECORD_LOST
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func main() {
	pages, err := strconv.Atoi(os.Args[2])
	check(err)
	fields, err := strconv.ParseUint(os.Args[3], 10, 64)
	check(err)
	rawAt := 8 + 8*bits.OnesCount64(fields&^raw)
	size := pages * page
	file, err := os.OpenFile(os.Args[1], os.O_RDWR, 0)
	check(err)
	ring, err := syscall.Mmap(int(file.Fd()), 0, page+size,
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(err)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	data := ring[page:]
	at := func(position uint64, length int) []byte {
		start := int(position % uint64(size))
		if length <= size-start {
			return data[start : start+length]
		}
		return append(append([]byte{}, data[start:]...), data[:length-(size-start)]...)
	}
	head := atomic.LoadUint64((*uint64)(unsafe.Pointer(&ring[1024])))
	shared := (*uint64)(unsafe.Pointer(&ring[1032]))
	tail := *shared
	left := uint32(head - tail) // a 32-bit kernel's data_head has 32 bits
	end := tail + uint64(left)
	if left != 0 && (uint64(left) > uint64(size) || head%8 != 0 || tail%8 != 0) {
		fmt.Fprintln(out, "error positions")
		left = 0
	}
	order := binary.LittleEndian
	for left != 0 {
		header := at(tail, 8)
		kind, length := order.Uint32(header), int(order.Uint16(header[6:]))
		if length < 8 || length%8 != 0 || length > int(left) {
			fmt.Fprintln(out, "error header.size")
			break
		}
		record := at(tail, length)
		switch {
		case kind == sample && length >= rawAt+4 &&
			int64(order.Uint32(record[rawAt:])) <= int64(length-rawAt-4):
			size := int(order.Uint32(record[rawAt:]))
			fmt.Fprintln(out, "sample", hex.EncodeToString(record[rawAt+4:rawAt+4+size]))
		case kind == lost && length >= 24:
			fmt.Fprintln(out, "lost", order.Uint64(record[16:]))
		default:
			fmt.Fprintln(out, "error type", kind)
		}
		tail += uint64(length)
		left -= uint32(length)
	}
	atomic.StoreUint64(shared, end)
	fmt.Fprintln(out, "tail", end)
}
