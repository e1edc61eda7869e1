// A file's content as a stream of bytes, decompressed on the way.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace slacktier {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Up to `capacity` (> 0) bytes of content; 0 at the end. Throws UsageError for truncated or damaged compressed data
  // (without the path: LineReader puts path and line before it), std::system_error when the file cannot be read.
  virtual std::size_t read(char* to, std::size_t capacity) = 0;
  virtual const char* format() const = 0;  // "plain", "gzip", "zstd"
};

// Opens a file and picks the decompressor by the first bytes. Throws UsageError when it cannot be opened or is empty.
std::unique_ptr<ByteStream> open_byte_stream(const std::string& path);

// Lines of a stream, with bounded memory.
class LineReader {
 public:
  LineReader(const std::string& path, std::size_t max_line_bytes);
  // The next line without its newline, valid until the next call; false at the end. Throws UsageError for lines that are too
  // long, and what ByteStream::read throws.
  bool next(std::string_view& line);
  std::size_t line_number() const { return number_; }  // of the line last handed out, from 1
  const std::string& path() const { return path_; }
  const char* format() const { return stream_->format(); }

 private:
  std::string path_;
  std::unique_ptr<ByteStream> stream_;
  std::size_t max_line_bytes_;
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0, number_ = 0;
  bool ended_ = false;
};

}  // namespace slacktier
