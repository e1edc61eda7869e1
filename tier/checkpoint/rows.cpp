// Rows of a safetensors checkpoint as records.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "platforms/error.hpp"
#include "platforms/quantity.hpp"
#include "tier/checkpoint/files.hpp"
#include "tier/checkpoint/records.hpp"
#include "tier/rows.hpp"
#include "tier/table/mix.hpp"

namespace slacktier {

namespace {

constexpr std::uint64_t sampled_rows = 64;  // of each layer, for the fingerprint

// A range of a layer's rows that lies in one tensor.
struct Piece {
  LocatedTensor tensor;
  std::uint64_t first_row = 0, rows = 0;
  std::uint64_t offset = 0;  // of the first row's bytes in the file
  std::uint64_t stride = 0;  // from one row to the next; 0: all rows share one scale
};

class Pieces {
 public:
  void add(Piece piece) {
    piece.first_row = rows();
    list_.push_back(std::move(piece));
  }
  std::uint64_t rows() const { return list_.empty() ? 0 : list_.back().first_row + list_.back().rows; }
  const std::vector<Piece>& list() const { return list_; }

  // `count` rows of `bytes` each from global row `first` on, packed. All must be there.
  void read(std::uint64_t first, std::uint64_t count, std::uint32_t bytes, std::byte* out) const {
    while (count > 0) {
      const auto above = std::upper_bound(list_.begin(), list_.end(), first,
                                          [](std::uint64_t row, const Piece& piece) { return row < piece.first_row; });
      const Piece& piece = *std::prev(above);
      const std::uint64_t within = first - piece.first_row, here = std::min(count, piece.rows - within);
      const TensorFile& file = *piece.tensor.file;
      if (piece.stride == bytes) {
        file.read({out, here * bytes}, piece.offset + within * bytes);
      } else {
        for (std::uint64_t i = 0; i < here; ++i)
          file.read({out + i * bytes, bytes}, piece.offset + (within + i) * piece.stride);
      }
      out += here * bytes;
      first += here;
      count -= here;
    }
  }

 private:
  std::vector<Piece> list_;
};

struct LayerTensors {
  Pieces weights, scales;
  RecordMaker maker;
  std::string name;  // of the first weight, for messages
};

struct Checkpoint {
  explicit Checkpoint(const std::string& path) : files(path) {}
  CheckpointFiles files;
  TableSpec spec;
  std::vector<LayerTensors> layers;
  std::string description;
  std::uint64_t identity = 0;
};

class CheckpointRows final : public RowOrigin {
 public:
  CheckpointRows(std::shared_ptr<const Checkpoint> checkpoint, std::size_t layer_index, const Shard& shard)
      : checkpoint_(std::move(checkpoint)), layer_(checkpoint_->layers.at(layer_index)), shard_(shard) {}

  void row(std::uint64_t local_row, std::byte* out) const override { rows(local_row, 1, out); }

  void rows(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    const std::uint32_t row_bytes = checkpoint_->spec.row_bytes;
    while (count > 0) {
      // Bounded, so that the packed copies stay in the CPU's caches.
      const std::uint64_t here = std::min({count, shard_.run(first), std::uint64_t{256}});
      make(shard_.global_row(first), here, out);
      out += here * row_bytes;
      first += here;
      count -= here;
    }
  }

  std::string describe() const override { return checkpoint_->description; }

 private:
  void make(std::uint64_t global_row, std::uint64_t count, std::byte* out) const {
    const RecordMaker& maker = layer_.maker;
    const std::uint32_t row_bytes = checkpoint_->spec.row_bytes;
    // Padding that the checkpoint does not hold.
    const std::uint64_t held = std::min(count, layer_.weights.rows() - std::min(layer_.weights.rows(), global_row));
    std::memset(out + held * row_bytes, 0, (count - held) * row_bytes);
    if (held == 0) return;
    if (!maker.fp8_weight) {
      layer_.weights.read(global_row, held, row_bytes, out);
      return;
    }
    thread_local std::vector<std::byte> packed;
    const std::size_t weight_bytes = maker.weight_bytes(), scale_bytes = maker.scale_bytes();
    packed.resize(held * (weight_bytes + scale_bytes));
    std::byte* const weights = packed.data();
    std::byte* const scales = weights + held * weight_bytes;
    layer_.weights.read(global_row, held, maker.weight_bytes(), weights);
    layer_.scales.read(global_row, held, maker.scale_bytes(), scales);
    for (std::uint64_t i = 0; i < held; ++i) {
      const int bad = maker.make(weights + i * weight_bytes, scales + i * scale_bytes, out + i * row_bytes);
      if (bad >= 0) {
        throw UsageError(
            fmt::format("{}: scale {} of row {} of \"{}\" is no power of two, which the record's E8M0 scales "
                        "have to be: give the table the record bf16",
                        checkpoint_->files.path(), bad, global_row + i, layer_.name));
      }
    }
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  const LayerTensors& layer_;
  Shard shard_;
};

class CheckpointTable final : public TableRows {
 public:
  explicit CheckpointTable(std::shared_ptr<const Checkpoint> checkpoint) : checkpoint_(std::move(checkpoint)) {}
  std::unique_ptr<RowOrigin> origin(std::size_t layer_index, const Shard& shard) const override {
    return std::make_unique<CheckpointRows>(checkpoint_, layer_index, shard);
  }
  std::string describe() const override { return checkpoint_->description; }
  std::uint64_t identity() const override { return checkpoint_->identity; }

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;
};

// Finds a layer's tensors and checks that they make its rows.
class Resolver {
 public:
  Resolver(CheckpointFiles& files, const TableSpec& spec, std::size_t layer_index)
      : files_(files), spec_(spec), table_(spec.layers[layer_index]) {}

  LayerTensors resolve() {
    LayerTensors result;
    const auto weights = find(spec_.tensors.weight, "weight");
    result.name = weights.front().name;
    const std::string& type = weights.front().tensor->dtype;
    result.maker.format = spec_.format;
    result.maker.values = spec_.row_values;
    result.maker.fp8_weight = type == "F8_E4M3";
    const bool bf16_record = spec_.format == RecordFormat::bf16;
    if (!result.maker.fp8_weight && !(bf16_record && type == "BF16")) {
      fail(weights.front(), fmt::format("is {}; records of this table come from {}", type,
                                        bf16_record ? "BF16, or from F8_E4M3 with a scale" : "F8_E4M3 with a scale"));
    }
    for (const LocatedTensor& tensor : weights) result.weights.add(weight_piece(tensor, type, result.maker));
    check_rows(weights, result.weights);
    if (!result.maker.fp8_weight) return result;
    if (spec_.tensors.scale.empty()) fail(weights.front(), "is F8_E4M3, and the table's \"rows\" name no \"scale\" for it");
    add_scales(find(spec_.tensors.scale, "scale"), result);
    return result;
  }

 private:
  [[noreturn]] void fail(const LocatedTensor& tensor, const std::string& problem) const {
    throw UsageError(fmt::format("{}: tensor \"{}\" {}", tensor.file->path(), tensor.name, problem));
  }

  static std::string filled(std::string name, const std::string& blank, std::uint64_t value) {
    for (std::size_t at; (at = name.find(blank)) != std::string::npos;)
      name.replace(at, blank.size(), std::to_string(value));
    return name;
  }

  // The tensors of the first of `names` that the checkpoint has, in row order.
  std::vector<LocatedTensor> find(const std::vector<std::string>& names, const char* what) {
    std::vector<std::string> tried;
    for (const std::string& name : names) {
      const std::string layered = filled(name, "{layer}", static_cast<std::uint64_t>(table_.layer));
      const bool heads = layered.find("{head}") != std::string::npos, parts = layered.find("{part}") != std::string::npos;
      if (heads && parts)
        throw UsageError(fmt::format("table {}: rows: \"{}\" has {{head}} and {{part}}", spec_.name, name));
      const char* const blank = heads ? "{head}" : "{part}";
      tried.push_back(filled(layered, blank, 0));
      if (tried.back().find_first_of("{}") != std::string::npos)
        throw UsageError(
            fmt::format("table {}: rows: \"{}\" has an unknown name in braces; there are {{layer}}, {{head}} and "
                        "{{part}}",
                        spec_.name, name));
      std::vector<LocatedTensor> found;
      for (std::uint64_t i = 0; i == 0 || heads || parts; ++i) {
        if (heads && i == spec_.rows_per_token()) break;
        const LocatedTensor tensor = files_.find(filled(layered, blank, i));
        if (!tensor && heads && i > 0)
          throw UsageError(fmt::format("{}: lacks the tensor \"{}\" of head {}", files_.path(), tensor.name, i));
        if (!tensor) break;
        found.push_back(tensor);
      }
      if (!found.empty()) {
        by_head_ = heads;
        return found;
      }
    }
    if (names.empty())
      throw UsageError(
          fmt::format("table {} does not say where a checkpoint holds its rows: add \"rows\": {{\"{}\": NAME}} to "
                      "its file",
                      spec_.name, what));
    throw UsageError(fmt::format("{}: holds no {} of table {}, layer {}: looked for {}; {}", files_.path(), what, spec_.name,
                                 table_.layer, fmt::join(tried, " and "), files_.examples()));
  }

  // All dimensions but the last count rows.
  std::uint64_t rows_of(const LocatedTensor& tensor) const {
    std::uint64_t rows = 1;
    for (std::size_t i = 0; i + 1 < tensor.tensor->shape.size(); ++i) rows *= tensor.tensor->shape[i];
    return rows;
  }

  Piece weight_piece(const LocatedTensor& tensor, const std::string& type, const RecordMaker& maker) const {
    if (tensor.tensor->dtype != type)
      fail(tensor, fmt::format("is {}, others of its table are {}", tensor.tensor->dtype, type));
    const auto& shape = tensor.tensor->shape;
    const std::uint64_t width = shape.size() < 2 ? 0 : shape.back();
    const std::uint64_t first = spec_.tensors.column_split ? table_.first_value : 0;
    const bool fits = spec_.tensors.column_split ? width >= first + maker.values : width == maker.values;
    if (!fits) {
      fail(tensor, fmt::format("has the shape [{}]; rows of {} values {}are needed", fmt::join(shape, ", "),
                               spec_.tensors.column_split ? first + maker.values : maker.values,
                               spec_.tensors.column_split ? "and more " : ""));
    }
    const std::uint64_t value_bytes = maker.fp8_weight ? 1 : 2;
    return {tensor, 0, rows_of(tensor), tensor.tensor->begin + first * value_bytes, width * value_bytes};
  }

  void check_rows(const std::vector<LocatedTensor>& weights, const Pieces& pieces) const {
    for (std::size_t c = 0; by_head_ && c < weights.size(); ++c) {
      const std::uint64_t wanted = table_.head_offset[c + 1] - table_.head_offset[c];
      if (pieces.list()[c].rows != wanted)
        fail(weights[c],
             fmt::format("has {} rows, head {} of table {} has {}", pieces.list()[c].rows, c, spec_.name, wanted));
    }
    if (pieces.rows() < table_.head_offset.back() || pieces.rows() > table_.rows) {
      fail(weights.front(), fmt::format("{}has {} rows, layer {} of table {} has {}",
                                        weights.size() == 1 ? "" : fmt::format("and the {} after it ", weights.size() - 1),
                                        pieces.rows(), table_.layer, spec_.name, table_.rows));
    }
  }

  void add_scales(const std::vector<LocatedTensor>& scales, LayerTensors& result) const {
    RecordMaker& maker = result.maker;
    const std::string& type = scales.front().tensor->dtype;
    maker.scale = type == "F8_E8M0" || type == "U8" ? ScaleType::e8m0
                  : type == "F32"                   ? ScaleType::fp32
                  : type == "BF16"                  ? ScaleType::bf16
                                                    : ScaleType::none;
    if (maker.scale == ScaleType::none)
      fail(scales.front(), fmt::format("is {}; scales are F8_E8M0, U8, F32 or BF16", type));
    const std::uint64_t rows = result.weights.rows();
    for (const LocatedTensor& tensor : scales) {
      if (tensor.tensor->dtype != type)
        fail(tensor, fmt::format("is {}, others of its table are {}", tensor.tensor->dtype, type));
      const auto& shape = tensor.tensor->shape;
      std::uint64_t elements = 1;
      for (const std::uint64_t extent : shape) elements *= extent;
      const bool one = elements == 1 && rows != 1 && scales.size() == 1;
      // [rows] is [rows, 1]; leading dimensions count rows.
      const std::uint64_t count = one || shape.size() < 2 ? 1 : shape.back();
      const std::uint64_t held = one ? rows : shape.size() < 2 ? elements : rows_of(tensor);
      const std::uint64_t blocks =
          maker.format == RecordFormat::fp8_e4m3_block32 ? maker.values / 32 : std::uint64_t{maker.values};
      if (count == 0 || count > blocks || blocks % count != 0 || (maker.scale_count != 0 && maker.scale_count != count))
        fail(tensor, fmt::format("has the shape [{}]: {} scales a row do not divide its {} {}", fmt::join(shape, ", "),
                                 count, blocks, maker.format == RecordFormat::bf16 ? "values" : "blocks of 32 values"));
      maker.scale_count = static_cast<std::uint32_t>(count);
      result.scales.add({tensor, 0, held, tensor.tensor->begin, one ? 0 : std::uint64_t{maker.scale_bytes()}});
    }
    if (spec_.tensors.column_split && maker.scale_count > 1)
      fail(scales.front(), "has scales by column of rows that are split by columns");
    if (result.scales.rows() != rows)
      fail(scales.front(), fmt::format("gives scales for {} rows, there are {}", result.scales.rows(), rows));
  }

  CheckpointFiles& files_;
  const TableSpec& spec_;
  const LayerTable& table_;
  bool by_head_ = false;
};

// Files used, their headers, tensors and a sample of rows: other weights in files of equal shape give another fingerprint.
void fingerprint(Checkpoint& checkpoint) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const auto add = [&state](std::uint64_t number) { XXH3_64bits_update(&state, &number, sizeof number); };
  std::set<const TensorFile*> files;
  std::uint64_t bytes = 0;
  for (const LayerTensors& layer : checkpoint.layers) {
    for (const Pieces* pieces : {&layer.weights, &layer.scales}) {
      for (const Piece& piece : pieces->list()) {
        XXH3_64bits_update(&state, piece.tensor.name.data(), piece.tensor.name.size());
        add(piece.offset);
        add(piece.rows);
        if (!files.insert(piece.tensor.file).second) continue;
        add(piece.tensor.file->bytes());
        add(piece.tensor.file->header_hash());
        bytes += piece.tensor.file->bytes();
      }
    }
    const std::uint64_t rows = layer.weights.rows();
    std::vector<std::byte> row(layer.maker.weight_bytes() + layer.maker.scale_bytes());
    for (std::uint64_t i = 0; rows > 0 && i < sampled_rows; ++i) {
      const std::uint64_t chosen = splitmix64(i) % rows;
      layer.weights.read(chosen, 1, layer.maker.weight_bytes(), row.data());
      if (layer.maker.fp8_weight)
        layer.scales.read(chosen, 1, layer.maker.scale_bytes(), row.data() + layer.maker.weight_bytes());
      XXH3_64bits_update(&state, row.data(), row.size());
    }
  }
  checkpoint.identity = XXH3_64bits_digest(&state);
  checkpoint.description = fmt::format("safetensors fingerprint={:016x} ({} in {} file{})", checkpoint.identity,
                                       bytes_text(bytes), files.size(), files.size() == 1 ? "" : "s");
}

}  // namespace

std::shared_ptr<const TableRows> checkpoint_table(const TableSpec& spec, const std::string& path) {
  auto checkpoint = std::make_shared<Checkpoint>(path);
  checkpoint->spec = spec;
  for (std::size_t l = 0; l < spec.layers.size(); ++l)
    checkpoint->layers.push_back(Resolver(checkpoint->files, checkpoint->spec, l).resolve());
  fingerprint(*checkpoint);
  return std::make_shared<CheckpointTable>(checkpoint);
}

}  // namespace slacktier
